// What the nonblocking and the persistent form of a collective cost a program that has nothing to do in between:
// microseconds of MPI_I... and MPI_Wait, and of MPI_Start and MPI_Wait, measured in fine alternation with the blocking
// call.
//
//   forms SLOT VARIANTS SIZES OPERATIONS   VARIANTS: of "blocking", "nonblocking" and "persistent", those that are printed
#include "alternation.h"

static const struct collective* measured;
static MPI_Request persistent;

static void call_nonblocking(struct operands* my) {
  MPI_Request request;
  measured->start(my, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void call_persistent(struct operands* my) {
  (void)my;
  MPI_Start(&persistent);
  MPI_Wait(&persistent, MPI_STATUS_IGNORE);
}

static void measure(struct operands* my, size_t bytes, const struct arguments* arguments) {
  operation *write = measured->write, *read = measured->read;
  struct way ways[] = {{.write = write, .call = measured->call, .read = read, .bytes = bytes},
                       {.write = write, .call = call_nonblocking, .read = read, .bytes = bytes},
                       {.write = write, .call = call_persistent, .read = read, .bytes = bytes}};
  const char* const names[] = {"blocking", "nonblocking", "persistent"};
  my->bytes = bytes;
  my->right = true;
  measured->prepare(my, &persistent);
  measure_in_alternation(my, ways, 3, arguments->budget);
  MPI_Request_free(&persistent);
  require_data(my->right, measured->name, bytes);
  for (int i = 0; i < 3 && my->world.rank == 0; ++i)
    if (wants(arguments, names[i])) print_value(measured->name, names[i], bytes, ways[i].seconds * 1e6);
}

int main(int argc, char** argv) {
  struct world world = start_mpi(&argc, &argv);
  struct arguments arguments = read_arguments(argc, argv);
  struct arguments which = {.variants = argc > 4 ? argv[4] : "barrier"};
  struct operands my = new_operands(world, largest_size(&arguments));
  for (int i = 0; i < count_collectives; ++i) {
    measured = &collectives[i];
    if (!wants(&which, measured->name)) continue;
    if (!has_sizes(measured)) measure(&my, 0, &arguments);
    for (int at = 0; has_sizes(measured) && at < arguments.count; ++at)
      measure(&my, arguments.sizes[at], &arguments);
  }
  MPI_Finalize();
  return 0;
}
