/* Stands for PSM2 on machines without Omni-Path (src/ofi/without_rdma.h): libfabric finds every function that it imports, and its
   provider hears from each that there is no device. Most have no parameters here, since they look at none. */

enum { NO_DEVICE = 21 }; /* the same number in PSM and PSM2 */

#define ABSENT(name)                                                                                         \
  int name(void);                                                                                            \
  int name(void) { return NO_DEVICE; }

ABSENT(psm2_am_get_parameters)
ABSENT(psm2_am_get_source)
ABSENT(psm2_am_register_handlers_2)
ABSENT(psm2_am_reply_short)
ABSENT(psm2_am_request_short)
ABSENT(psm2_ep_close)
ABSENT(psm2_ep_connect)
ABSENT(psm2_ep_disconnect2)
ABSENT(psm2_ep_epid_lookup2)
ABSENT(psm2_ep_open)
ABSENT(psm2_ep_open_opts_get_defaults)
ABSENT(psm2_epaddr_getctxt)
ABSENT(psm2_epaddr_setctxt)
ABSENT(psm2_epaddr_to_epid)
ABSENT(psm2_error_register_handler)
ABSENT(psm2_finalize)
ABSENT(psm2_info_query)
ABSENT(psm2_init)
ABSENT(psm2_mq_cancel)
ABSENT(psm2_mq_improbe2)
ABSENT(psm2_mq_imrecv)
ABSENT(psm2_mq_init)
ABSENT(psm2_mq_ipeek)
ABSENT(psm2_mq_iprobe2)
ABSENT(psm2_mq_irecv2)
ABSENT(psm2_mq_isend2)
ABSENT(psm2_mq_send2)
ABSENT(psm2_mq_test2)
ABSENT(psm2_mq_wait2)
ABSENT(psm2_poll)

const char* psm2_error_get_string(int error);
const char* psm2_error_get_string(int error) {
  (void)error;
  return "there is no device";
}

unsigned long long psm2_get_capability_mask(unsigned long long wanted);
unsigned long long psm2_get_capability_mask(unsigned long long wanted) {
  (void)wanted;
  return 0;
}
