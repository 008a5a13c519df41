// MPI_Comm_split_type on one machine or several: by machines, and by parts of each machine.
#include "check.h"

#include <string.h>

static int rank, size;

/// Which ranks run on this rank's machine: 1 or 0 for each.
static int* find_machine(void) {
  char name[MPI_MAX_PROCESSOR_NAME] = {0};
  int length;
  OK(MPI_Get_processor_name(name, &length));
  char* names = malloc((size_t)size * sizeof name);
  int* same = malloc((size_t)size * sizeof(int));
  OK(MPI_Allgather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, MPI_COMM_WORLD));
  for (int r = 0; r < size; ++r) same[r] = memcmp(names + (size_t)r * sizeof name, name, sizeof name) == 0;
  free(names);
  return same;
}

/// Splits MPI_COMM_WORLD by a kind of part, under one of the guided types.
static MPI_Comm split_by(int type, const char* kind) {
  MPI_Info info;
  MPI_Comm part;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "mpi_hw_resource_type", kind));
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, type, 0, info, &part));
  OK(MPI_Info_free(&info));
  return part;
}

/// All members run on this rank's machine. Returns their number.
static int check_machine(MPI_Comm part, const int* on_this_machine) {
  MPI_Group group, world;
  int members;
  OK(MPI_Comm_group(part, &group));
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_size(group, &members));
  for (int i = 0; i < members; ++i) {
    int its_rank;
    OK(MPI_Group_translate_ranks(group, 1, &i, world, &its_rank));
    CHECK(on_this_machine[its_rank]);
  }
  OK(MPI_Group_free(&group));
  OK(MPI_Group_free(&world));
  return members;
}

static int is_bound_within(const char* kind) {
  MPI_Info info;
  char value[8];
  int room = sizeof value, found;
  OK(MPI_Get_hw_resource_info(&info));
  OK(MPI_Info_get_string(info, kind, &room, value, &found));
  OK(MPI_Info_free(&info));
  CHECK(found);
  return strcmp(value, "true") == 0;
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  int* on_this_machine = find_machine();
  int here = 0;
  for (int r = 0; r < size; ++r) here += on_this_machine[r];

  MPI_Comm part;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part));
  CHECK(check_machine(part, on_this_machine) == here);
  OK(MPI_Comm_free(&part));
  const char* const machines[] = {"mpi_shared_memory", "hwloc://Machine", "Machine"};
  for (int i = 0; i < 3; ++i) {
    part = split_by(i % 2 ? MPI_COMM_TYPE_HW_GUIDED : MPI_COMM_TYPE_RESOURCE_GUIDED, machines[i]);
    CHECK(check_machine(part, on_this_machine) == here);
    OK(MPI_Comm_free(&part));
  }
  // Each part is on one machine, even if parts of several machines have the same number.
  const char* const kinds[] = {"hwloc://Package", "hwloc://NUMANode", "hwloc://L3Cache", "hwloc://L2Cache",
                               "hwloc://Core"};
  for (int i = 0; i < 5; ++i) {
    part = split_by(i % 2 ? MPI_COMM_TYPE_HW_GUIDED : MPI_COMM_TYPE_RESOURCE_GUIDED, kinds[i]);
    CHECK((part != MPI_COMM_NULL) == is_bound_within(kinds[i]));
    if (part == MPI_COMM_NULL) continue;
    const int members = check_machine(part, on_this_machine);
    if (i == 1) printf("rank %d: %d ranks on its node, %d on its machine\n", rank, members, here);
    OK(MPI_Comm_free(&part));
  }
  CHECK(is_bound_within("mpi_shared_memory") && is_bound_within("hwloc://Machine"));

  // The library chooses machines first.
  MPI_Info told;
  OK(MPI_Info_create(&told));
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, told, &part));
  if (here < size) {
    char kind[32] = "";
    int room = sizeof kind, found;
    CHECK(part != MPI_COMM_NULL && check_machine(part, on_this_machine) == here);
    OK(MPI_Info_get_string(told, "mpi_hw_resource_type", &room, kind, &found));
    CHECK(found && strcmp(kind, "mpi_shared_memory") == 0);
  }
  if (part != MPI_COMM_NULL) OK(MPI_Comm_free(&part));
  OK(MPI_Info_free(&told));
  free(on_this_machine);
  OK(MPI_Finalize());
  return 0;
}
