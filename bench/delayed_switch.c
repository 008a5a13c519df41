// A switch whose links have a delay: frames that arrive at one of its ports leave by another after the given time. It joins the
// machines of bench/compare --net where the kernel cannot delay frames itself (sch_netem is seldom built).
//
//   delayed_switch MICROSECONDS INTERFACE INTERFACE ...
//
// A port is one end of a pair of veth interfaces, read and written as a packet socket. Frames stay as large as the sender's kernel
// has made them (up to 64 KiB, with the header of virtio_net that says how to cut them), so that the switch, which takes its time
// from the same processors, costs little. It sleeps until something arrives or is due, with the priority of real time where
// that is allowed: otherwise ranks that poll would make it wait.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
  most_ports = 17,
  most_addresses = 64,
  frame_bytes = 72 << 10,
  frames = 2048,
  reads_at_once = 16,
  kernel_buffer = 32 << 20
};

struct frame {
  uint64_t due; // nanoseconds of the clock of arrivals
  int port;     // by which it came
  size_t bytes;
  unsigned char data[frame_bytes]; // a virtio_net_hdr first
};

static struct {
  int ports[most_ports];
  int count;
  struct {
    unsigned char address[ETH_ALEN];
    int port;
  } known[most_addresses]; // which address is behind which port
  int addresses;
  struct frame* ring;
  uint64_t first, end; // of the frames that wait
  uint64_t delay;      // nanoseconds
} self;

static _Noreturn void fail(const char* what) {
  fprintf(stderr, "delayed_switch: %s: %s\n", what, strerror(errno));
  exit(1);
}

static uint64_t nanoseconds(const struct timespec* time) {
  return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time); // the one that the kernel stamps arrivals with
  return nanoseconds(&time);
}

static void set(int port, int level, int option, int value) {
  if (setsockopt(port, level, option, &value, sizeof value) != 0) fail("setsockopt");
}

static int open_port(const char* name) {
  int port = socket(AF_PACKET, SOCK_RAW, 0); // nothing arrives before bind()
  struct sockaddr_ll place = {
      .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(name)};
  if (port < 0 || place.sll_ifindex == 0) fail(name);
  set(port, SOL_PACKET, PACKET_VNET_HDR, 1);
  set(port, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
  set(port, SOL_PACKET, PACKET_QDISC_BYPASS, 1);
  set(port, SOL_SOCKET, SO_TIMESTAMPNS, 1);
  set(port, SOL_SOCKET, SO_RCVBUFFORCE, kernel_buffer);
  set(port, SOL_SOCKET, SO_SNDBUFFORCE, kernel_buffer);
  if (bind(port, (void*)&place, sizeof place) != 0) fail(name);
  return port;
}

static uint64_t time_of_arrival(struct msghdr* head) {
  for (struct cmsghdr* at = CMSG_FIRSTHDR(head); at; at = CMSG_NXTHDR(head, at)) {
    struct timespec time;
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_TIMESTAMPNS) continue;
    memcpy(&time, CMSG_DATA(at), sizeof time);
    return nanoseconds(&time);
  }
  return now();
}

/// Takes a frame out of a port, if there is one. A frame that finds the ring full stays in the kernel, and what finds that full is lost.
static bool read_frame(int port) {
  if (self.end - self.first == frames) return false;
  struct frame* frame = &self.ring[self.end % frames];
  char control[128];
  struct iovec data = {frame->data, frame_bytes};
  struct msghdr head = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  ssize_t bytes = recvmsg(self.ports[port], &head, MSG_DONTWAIT);
  if (bytes < (ssize_t)(sizeof(struct virtio_net_hdr) + ETH_HLEN) || (head.msg_flags & MSG_TRUNC))
    return bytes > 0;
  frame->port = port;
  frame->bytes = (size_t)bytes;
  frame->due = time_of_arrival(&head) + self.delay;
  ++self.end;
  return true;
}

static bool read_all(void) {
  bool any = false;
  for (int port = 0; port < self.count; ++port)
    for (int i = 0; i < reads_at_once && read_frame(port); ++i) any = true;
  return any;
}

static int port_of(const unsigned char* address) {
  for (int i = 0; i < self.addresses; ++i)
    if (memcmp(self.known[i].address, address, ETH_ALEN) == 0) return self.known[i].port;
  return -1;
}

static void learn(const unsigned char* address, int port) {
  if (port_of(address) >= 0 || self.addresses == most_addresses) return;
  memcpy(self.known[self.addresses].address, address, ETH_ALEN);
  self.known[self.addresses++].port = port;
}

static void forward(const struct frame* frame) {
  const unsigned char* to = frame->data + sizeof(struct virtio_net_hdr);
  learn(to + ETH_ALEN, frame->port);
  int only = port_of(to);
  for (int port = 0; port < self.count; ++port) {
    if (port == frame->port || (only >= 0 && port != only)) continue;
    // What the kernel does not take is lost, as it would be on a wire.
    (void)!send(self.ports[port], frame->data, frame->bytes, MSG_DONTWAIT);
  }
}

static void forward_due(void) {
  for (uint64_t time = now(); self.first != self.end && self.ring[self.first % frames].due <= time;
       ++self.first)
    forward(&self.ring[self.first % frames]);
}

static void sleep_until_something_happens(void) {
  struct pollfd waited[most_ports];
  for (int port = 0; port < self.count; ++port)
    waited[port] = (struct pollfd){.fd = self.ports[port], .events = POLLIN};
  struct timespec left = {0};
  if (self.first != self.end) {
    uint64_t due = self.ring[self.first % frames].due, time = now();
    if (due <= time) return;
    left.tv_nsec = (long)(due - time < 999999999 ? due - time : 999999999);
  }
  if (ppoll(waited, (nfds_t)self.count, self.first != self.end ? &left : NULL, NULL) < 0 && errno != EINTR)
    fail("ppoll");
}

int main(int argc, char** argv) {
  if (argc < 4 || argc - 2 > most_ports) {
    fprintf(stderr, "usage: delayed_switch MICROSECONDS INTERFACE INTERFACE ...\n");
    return 2;
  }
  self.delay = strtoull(argv[1], NULL, 10) * 1000;
  self.ring = mmap(NULL, frames * sizeof *self.ring, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (self.ring == MAP_FAILED) fail("mmap");
  for (int i = 2; i < argc; ++i) self.ports[self.count++] = open_port(argv[i]);
  prctl(PR_SET_TIMERSLACK, 1);
  struct sched_param priority = {.sched_priority = 1};
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0)
    perror("delayed_switch: without the priority of real time");
  printf("up\n");
  fflush(stdout);
  while (true) {
    bool any = read_all();
    forward_due();
    if (!any) sleep_until_something_happens();
  }
}
