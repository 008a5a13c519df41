// Attribute keys and the attributes of communicators, datatypes and windows. Source: MPI 5.0, section 7.7.
#pragma once

#include "object/error.h"
#include "object/object.h"

#include <vector>

namespace near::object {

/// A key made by MPI_Comm_create_keyval, MPI_Type_create_keyval or MPI_Win_create_keyval. Callbacks are
/// compared with the standard's predefined ones (NULL_COPY, DUP, NULL_DELETE), which are constants and never
/// called.
struct AttributeKey {
  Kind kind = Kind::none; ///< communicator, datatype or window
  void* copy = nullptr;   ///< MPI_*_copy_attr_function* of `kind`: (handle, key, extra, in, out, flag*)
  void* remove = nullptr; ///< MPI_*_delete_attr_function* of `kind`: (handle, key, value, extra)
  void* extra_state = nullptr;
  int value = MPI_KEYVAL_INVALID;
  bool freed = false; ///< by the program
  int references = 1; ///< the program's, plus one per attribute that uses the key
};

Result make_attribute_key(Kind kind, void* copy, void* remove, void* extra_state, int& value);
/// Marks the key for removal. It is destroyed with the last attribute that uses it; until then the
/// program may still use it (MPI 5.0, 7.7.2), and freeing it again does nothing.
Result free_attribute_key(Kind kind, int value);
/// Returns the live key with this value, or nullptr if there is no such key of that kind.
AttributeKey* find_attribute_key(Kind kind, int value);

class AttributeSet {
public:
  /// Sets the value. If an old value is replaced, its delete callback runs first, and its error is returned.
  Result set(Object& owner, int key, void* value);
  Result get(int key, void*& value, bool& found) const;
  /// Runs the delete callback and removes the attribute. Fails with MPI_ERR_KEYVAL if it is absent.
  Result remove(Object& owner, int key);
  /// Runs the copy callbacks of `from` in the order in which the attributes were set. After an error the
  /// copies made so far stay.
  Result copy_all(Object& from_owner, const AttributeSet& from, Object& to_owner);
  /// Runs the delete callbacks, beginning with the attribute set last. Stops at the first error and returns
  /// it; the other attributes stay (MPI 5.0, 7.7.1).
  Result remove_all(Object& owner);
  bool empty() const { return entries_.empty(); }

private:
  struct Entry {
    int key;
    void* value;
    bool leaving = false; ///< its delete callback is running
  };
  Entry* find(int key);
  Result run_delete(Object& owner, int key);
  std::vector<Entry> entries_;
};

} // namespace near::object
