// Attribute caching. Source: MPI 5.0, section 7.7; predefined attributes: section 9.1.2; deprecated names of
// MPI 1: section 16.1.
#include "mpi/error.h"
#include "mpi/impl.h"
#include "transport/transport.h"

namespace near::mpi::impl {

namespace {

/// The values of predefined attributes, to which the pointers given to programs refer.
struct PredefinedValues {
  int tag_ub = 0x7fffffff;
  int io = MPI_ANY_SOURCE; ///< every process can do I/O
  int host = MPI_PROC_NULL;
  int wtime_is_global = 1; ///< one clock per machine
  int appnum = 0;
  int universe_size = 1;
};
PredefinedValues values;

int* predefined(int key) {
  switch (key) {
  case MPI_TAG_UB: return &values.tag_ub;
  case MPI_IO: return &values.io;
  case MPI_HOST: return &values.host;
  case MPI_WTIME_IS_GLOBAL: return &values.wtime_is_global;
  case MPI_LASTUSEDCODE: return last_used_code_address();
  case MPI_APPNUM: values.appnum = static_cast<int>(process.start.application); return &values.appnum;
  case MPI_UNIVERSE_SIZE:
    values.universe_size = static_cast<int>(std::max(process.start.size, transport::universe_size()));
    return &values.universe_size;
  default: return nullptr;
  }
}

Result check_key(object::Kind kind, int key) {
  if (object::find_attribute_key(kind, key) != nullptr) return {};
  bool of_windows = key >= MPI_WIN_BASE && key <= MPI_WIN_MODEL;
  if ((kind == object::Kind::communicator && predefined(key) != nullptr) ||
      (kind == object::Kind::window && of_windows))
    return base::fail(MPI_ERR_KEYVAL, "attribute {} is predefined and cannot be changed", key);
  if (key == MPI_KEYVAL_INVALID) return base::fail(MPI_ERR_KEYVAL, "the key is MPI_KEYVAL_INVALID");
  return base::fail(MPI_ERR_KEYVAL, "{} is not a key for this kind of object", key);
}

template <class Owner>
Result set(object::Kind kind, Owner& owner, int key, void* value) {
  NEAR_TRY(check_key(kind, key));
  return owner.attributes.set(owner, key, value);
}

template <class Owner>
Result get(object::Kind kind, const Owner& owner, int key, void* value, int* flag) {
  NEAR_TRY(check_key(kind, key));
  void* present = nullptr;
  bool found = false;
  NEAR_TRY(owner.attributes.get(key, present, found));
  if (found) *static_cast<void**>(value) = present;
  *flag = found ? 1 : 0;
  return {};
}

template <class Owner>
Result remove(object::Kind kind, Owner& owner, int key) {
  NEAR_TRY(check_key(kind, key));
  return owner.attributes.remove(owner, key);
}

template <class Copy, class Delete>
Result create_key(object::Kind kind, Copy* copy, Delete* remove, void* extra_state, int* key) {
  return object::make_attribute_key(kind, reinterpret_cast<void*>(copy), reinterpret_cast<void*>(remove),
                                    extra_state, *key);
}

Result free_key(object::Kind kind, int* key) {
  NEAR_TRY(check_key(kind, *key));
  NEAR_TRY(object::free_attribute_key(kind, *key));
  *key = MPI_KEYVAL_INVALID;
  return {};
}

constexpr auto of_communicator = object::Kind::communicator, of_datatype = object::Kind::datatype,
               of_window = object::Kind::window;

/// The value of a predefined attribute of a window; returns false for any other key. The base is itself an
/// address; the others are addresses of numbers (MPI 5.0, 12.2.6).
bool predefined_of_window(Window& win, int key, void*& value) {
  switch (key) {
  case MPI_WIN_BASE: value = win.base; return true;
  case MPI_WIN_SIZE: value = &win.size; return true;
  case MPI_WIN_DISP_UNIT: value = &win.unit; return true;
  case MPI_WIN_CREATE_FLAVOR: value = &win.flavor; return true;
  case MPI_WIN_MODEL: value = &win.model; return true;
  default: return false;
  }
}

} // namespace

Result Comm_create_keyval(MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* remove,
                          int* comm_keyval, void* extra_state) {
  return create_key(of_communicator, copy, remove, extra_state, comm_keyval);
}

Result Comm_free_keyval(int* comm_keyval) { return free_key(of_communicator, comm_keyval); }

Result Comm_set_attr(Communicator& comm, int comm_keyval, void* attribute_val) {
  return set(of_communicator, comm, comm_keyval, attribute_val);
}

Result Comm_get_attr(Communicator& comm, int comm_keyval, void* attribute_val, int* flag) {
  if (int* value = predefined(comm_keyval); value != nullptr) {
    *static_cast<int**>(attribute_val) = value;
    *flag = 1;
    return {};
  }
  return get(of_communicator, comm, comm_keyval, attribute_val, flag);
}

Result Comm_delete_attr(Communicator& comm, int comm_keyval) {
  return remove(of_communicator, comm, comm_keyval);
}

Result Type_create_keyval(MPI_Type_copy_attr_function* copy, MPI_Type_delete_attr_function* remove,
                          int* type_keyval, void* extra_state) {
  return create_key(of_datatype, copy, remove, extra_state, type_keyval);
}

Result Type_free_keyval(int* type_keyval) { return free_key(of_datatype, type_keyval); }

Result Type_set_attr(Datatype& datatype, int type_keyval, void* attribute_val) {
  return set(of_datatype, datatype, type_keyval, attribute_val);
}

Result Type_get_attr(Datatype& datatype, int type_keyval, void* attribute_val, int* flag) {
  return get(of_datatype, datatype, type_keyval, attribute_val, flag);
}

Result Type_delete_attr(Datatype& datatype, int type_keyval) {
  return remove(of_datatype, datatype, type_keyval);
}

Result Win_create_keyval(MPI_Win_copy_attr_function* copy, MPI_Win_delete_attr_function* remove,
                         int* win_keyval, void* extra_state) {
  return create_key(of_window, copy, remove, extra_state, win_keyval);
}

Result Win_free_keyval(int* win_keyval) { return free_key(of_window, win_keyval); }

Result Win_set_attr(Window& win, int win_keyval, void* attribute_val) {
  return set(of_window, win, win_keyval, attribute_val);
}

Result Win_get_attr(Window& win, int win_keyval, void* attribute_val, int* flag) {
  void* value = nullptr;
  if (!predefined_of_window(win, win_keyval, value))
    return get(of_window, win, win_keyval, attribute_val, flag);
  *static_cast<void**>(attribute_val) = value;
  *flag = 1;
  return {};
}

Result Win_delete_attr(Window& win, int win_keyval) { return remove(of_window, win, win_keyval); }

Result Keyval_create(MPI_Copy_function* copy_fn, MPI_Delete_function* delete_fn, int* keyval,
                     void* extra_state) {
  return create_key(of_communicator, copy_fn, delete_fn, extra_state, keyval);
}

Result Keyval_free(int* keyval) { return free_key(of_communicator, keyval); }

Result Attr_put(Communicator& comm, int keyval, void* attribute_val) {
  return set(of_communicator, comm, keyval, attribute_val);
}

Result Attr_get(Communicator& comm, int keyval, void* attribute_val, int* flag) {
  return Comm_get_attr(comm, keyval, attribute_val, flag);
}

Result Attr_delete(Communicator& comm, int keyval) { return remove(of_communicator, comm, keyval); }

} // namespace near::mpi::impl
