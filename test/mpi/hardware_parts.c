// MPI_Comm_split_type by parts of the machine, and MPI_Get_hw_resource_info, compared with what the kernel
// reports about the processors that each rank may run on.
#define _GNU_SOURCE // sched_getaffinity
#include "check.h"

#include <sched.h>
#include <stdbool.h>
#include <string.h>

enum { kinds = 5, text_bytes = 512 };
static const char* const names[kinds] = {"hwloc://Package", "hwloc://NUMANode", "hwloc://L3Cache",
                                         "hwloc://L2Cache", "hwloc://Core"};
static int rank, size;

/// Identifies the part of one kind that a processor belongs to; "" if the kernel knows no such part.
typedef char part_name[text_bytes];

static bool read_line(const char* path, char* text) {
  FILE* file = fopen(path, "r");
  text[0] = '\0';
  if (file == NULL) return false;
  bool read = fgets(text, text_bytes, file) != NULL;
  fclose(file);
  text[strcspn(text, "\n")] = '\0';
  return read;
}

static void of_processor(int cpu, const char* file, char* text) {
  char path[128];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
  read_line(path, text);
}

static void cache_of(int cpu, char level, char* text) {
  for (int index = 0; index < 8; ++index) {
    char file[64];
    snprintf(file, sizeof file, "cache/index%d/level", index);
    of_processor(cpu, file, text);
    if (text[0] != level) continue;
    snprintf(file, sizeof file, "cache/index%d/shared_cpu_list", index);
    of_processor(cpu, file, text);
    return;
  }
  text[0] = '\0';
}

static void node_of(int cpu, char* text) {
  for (int node = 0; node < 1024; ++node) {
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/node%d/cpulist", cpu, node);
    if (read_line(path, text)) return;
  }
  strcpy(text, "the only one");
}

static void parts_of(int cpu, part_name parts[kinds]) {
  part_name package, core;
  of_processor(cpu, "topology/package_cpus_list", package);
  of_processor(cpu, "topology/core_cpus_list", core);
  strcpy(parts[0], package);
  node_of(cpu, parts[1]);
  cache_of(cpu, '3', parts[2]);
  cache_of(cpu, '2', parts[3]);
  strcpy(parts[4], core);
  // If the kernel reports no such cache, the L3 is taken per node and the L2 per core.
  if (parts[2][0] == '\0') snprintf(parts[2], text_bytes, "%.250s/%.250s", parts[0], parts[1]);
  if (parts[3][0] == '\0') strcpy(parts[3], core);
}

/// By kind: the part that contains all processors of this rank; "" if they lie in several.
static void own_parts(const cpu_set_t* processors, part_name own[kinds]) {
  bool first = true;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, processors)) continue;
    part_name parts[kinds];
    parts_of(cpu, parts);
    for (int kind = 0; kind < kinds; ++kind) {
      if (first) strcpy(own[kind], parts[kind]);
      if (strcmp(own[kind], parts[kind]) != 0) own[kind][0] = '\0';
    }
    first = false;
  }
}

static MPI_Info info_with(const char* key, const char* value) {
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, key, value));
  return info;
}

/// Checks that `comm` consists of the ranks of `over` for which `with_me` is set, in the same order.
static void check_members(MPI_Comm comm, MPI_Comm over, const bool* with_me, int count) {
  MPI_Group group, world;
  OK(MPI_Comm_group(comm, &group));
  OK(MPI_Comm_group(over, &world));
  int next = 0, members;
  OK(MPI_Group_size(group, &members));
  for (int other = 0; other < count; ++other) {
    if (!with_me[other]) continue;
    int translated;
    CHECK(next < members);
    OK(MPI_Group_translate_ranks(group, 1, &next, world, &translated));
    CHECK(translated == other);
    ++next;
  }
  CHECK(next == members);
  OK(MPI_Group_free(&group));
  OK(MPI_Group_free(&world));
}

static void check_info(part_name own[kinds]) {
  MPI_Info info;
  OK(MPI_Get_hw_resource_info(&info));
  for (int kind = 0; kind < kinds; ++kind) {
    char value[16];
    int room = sizeof value, found;
    OK(MPI_Info_get_string(info, names[kind], &room, value, &found));
    CHECK(found);
    CHECK(strcmp(value, own[kind][0] != '\0' ? "true" : "false") == 0);
  }
  OK(MPI_Info_free(&info));
}

/// Marks the ranks in the same part of this kind; returns whether the kind divides the ranks.
static bool mark(const part_name* all, int kind, bool* with_me) {
  bool some = false, same = true;
  const char* mine = all[rank * kinds + kind];
  for (int other = 0; other < size; ++other) {
    const char* its = all[other * kinds + kind];
    with_me[other] = mine[0] != '\0' && strcmp(its, mine) == 0;
    some |= its[0] != '\0';
    same &= strcmp(its, all[kind]) == 0;
  }
  return some && !same;
}

int main(int argc, char** argv) {
  cpu_set_t processors;
  CHECK(sched_getaffinity(0, sizeof processors, &processors) == 0); // before MPI_Init: as set by mpiexec
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  part_name own[kinds];
  own_parts(&processors, own);
  part_name* all = malloc((size_t)size * sizeof own);
  bool* with_me = malloc((size_t)size * sizeof *with_me);
  OK(MPI_Allgather(own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, MPI_COMM_WORLD));
  check_info(own);

  int first_that_divides = kinds;
  for (int kind = 0; kind < kinds; ++kind) {
    bool divides = mark((const part_name*)all, kind, with_me);
    if (divides && first_that_divides == kinds) first_that_divides = kind;
    int types[] = {MPI_COMM_TYPE_HW_GUIDED, MPI_COMM_TYPE_RESOURCE_GUIDED};
    for (int form = 0; form < 4; ++form) {
      MPI_Info info = info_with("mpi_hw_resource_type", names[kind] + (form / 2 ? strlen("hwloc://") : 0));
      MPI_Comm part;
      OK(MPI_Comm_split_type(MPI_COMM_WORLD, types[form % 2], 0, info, &part));
      CHECK((part == MPI_COMM_NULL) == (own[kind][0] == '\0'));
      if (part != MPI_COMM_NULL) {
        check_members(part, MPI_COMM_WORLD, with_me, size);
        OK(MPI_Barrier(part));
        OK(MPI_Comm_free(&part));
      }
      OK(MPI_Info_free(&info));
    }
  }

  // Unguided: split by the largest parts that divide the ranks; the info object then names their kind.
  MPI_Comm part;
  MPI_Info told;
  char told_name[64] = "";
  int room = sizeof told_name, found;
  OK(MPI_Info_create(&told));
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, told, &part));
  OK(MPI_Info_get_string(told, "mpi_hw_resource_type", &room, told_name, &found));
  OK(MPI_Info_free(&told));
  bool none = first_that_divides == kinds || own[first_that_divides][0] == '\0';
  CHECK((part == MPI_COMM_NULL) == none);
  CHECK(found == !none);
  if (!none) {
    CHECK(strcmp(told_name, names[first_that_divides]) == 0);
    mark((const part_name*)all, first_that_divides, with_me);
    check_members(part, MPI_COMM_WORLD, with_me, size);
    int members;
    OK(MPI_Comm_size(part, &members));
    CHECK(members < size);
    OK(MPI_Comm_free(&part));
  }
  if (rank == 0)
    printf("divided by %s\n", first_that_divides == kinds ? "nothing" : names[first_that_divides]);

  // A rank that does not take part need not pass the same type as the others.
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : MPI_COMM_TYPE_HW_UNGUIDED, 0,
                         MPI_INFO_NULL, &part));
  CHECK(rank != 0 || part == MPI_COMM_NULL);
  if (part != MPI_COMM_NULL) OK(MPI_Comm_free(&part));

  // An unknown kind divides nothing.
  MPI_Info info = info_with("mpi_hw_resource_type", "hwloc://Drawer");
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &part));
  CHECK(part == MPI_COMM_NULL);
  OK(MPI_Info_free(&info));

  // Intercommunicators between even and odd ranks.
  if (size > 1) {
    MPI_Comm half, between;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &between));
    OK(MPI_Comm_split_type(between, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &part));
    if (part != MPI_COMM_NULL) {
      int here, there;
      OK(MPI_Comm_size(part, &here));
      OK(MPI_Comm_remote_size(part, &there));
      CHECK(here + there < size);
      OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_free(&between));
    OK(MPI_Comm_free(&half));
  }
  free(all);
  free(with_me);
  OK(MPI_Finalize());
  return 0;
}
