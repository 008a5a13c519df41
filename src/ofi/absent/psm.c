/* Stands for PSM on machines without InfiniPath and TrueScale devices (src/ofi/without_rdma.h): libfabric finds every function that it imports, and its
   provider hears from each that there is no device. Most have no parameters here, since they look at none. */

enum { NO_DEVICE = 21 }; /* the same number in PSM and PSM2 */

#define ABSENT(name)                                                                                         \
  int name(void);                                                                                            \
  int name(void) { return NO_DEVICE; }

ABSENT(psm_am_get_parameters)
ABSENT(psm_am_register_handlers)
ABSENT(psm_am_reply_short)
ABSENT(psm_am_request_short)
ABSENT(psm_ep_close)
ABSENT(psm_ep_connect)
ABSENT(psm_ep_epid_lookup)
ABSENT(psm_ep_num_devunits)
ABSENT(psm_ep_open)
ABSENT(psm_ep_open_opts_get_defaults)
ABSENT(psm_epaddr_getctxt)
ABSENT(psm_epaddr_setctxt)
ABSENT(psm_error_register_handler)
ABSENT(psm_finalize)
ABSENT(psm_init)
ABSENT(psm_mq_cancel)
ABSENT(psm_mq_finalize)
ABSENT(psm_mq_init)
ABSENT(psm_mq_ipeek)
ABSENT(psm_mq_iprobe)
ABSENT(psm_mq_irecv)
ABSENT(psm_mq_isend)
ABSENT(psm_mq_send)
ABSENT(psm_mq_test)

const char* psm_error_get_string(int error);
const char* psm_error_get_string(int error) {
  (void)error;
  return "there is no device";
}
