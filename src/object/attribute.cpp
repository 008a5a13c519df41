// Attributes. A callback may call MPI again, also on the object whose attributes are being processed, so no
// reference into a set is held across a call: entries are found again by key.
#include "object/attribute.h"

#include <algorithm>
#include <unordered_map>

namespace near::object {

namespace {

/// The ABI's predefined keys are smaller. Values are given out in increasing order and never reused.
constexpr int first_key = 0x1000;

struct Keys {
  std::unordered_map<int, AttributeKey> live;
  int next = first_key;
};

Keys& keys() {
  static Keys& all = *new Keys;
  return all;
}

AttributeKey* find_live(int value) {
  auto at = keys().live.find(value);
  return at == keys().live.end() ? nullptr : &at->second;
}

void drop(AttributeKey& key) {
  if (--key.references == 0) keys().live.erase(key.value);
}

// In the ABI, MPI_COMM_NULL_COPY_FN, MPI_COMM_DUP_FN and MPI_COMM_NULL_DELETE_FN have the same values as their
// counterparts for types and windows.
void* const null_function = reinterpret_cast<void*>(MPI_COMM_NULL_COPY_FN);
void* const dup_function = reinterpret_cast<void*>(MPI_COMM_DUP_FN);

template <class Handle>
Handle handle_of(const Object& owner) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(owner.handle & ~retired_bit));
}

int call_copy(const AttributeKey& key, const Object& owner, void* in, void* out, int* flag) {
  switch (key.kind) {
  case Kind::datatype:
    return reinterpret_cast<MPI_Type_copy_attr_function*>(key.copy)(handle_of<MPI_Datatype>(owner), key.value,
                                                                    key.extra_state, in, out, flag);
  case Kind::window:
    return reinterpret_cast<MPI_Win_copy_attr_function*>(key.copy)(handle_of<MPI_Win>(owner), key.value,
                                                                   key.extra_state, in, out, flag);
  default:
    return reinterpret_cast<MPI_Comm_copy_attr_function*>(key.copy)(handle_of<MPI_Comm>(owner), key.value,
                                                                    key.extra_state, in, out, flag);
  }
}

int call_delete(const AttributeKey& key, const Object& owner, void* value) {
  switch (key.kind) {
  case Kind::datatype:
    return reinterpret_cast<MPI_Type_delete_attr_function*>(key.remove)(handle_of<MPI_Datatype>(owner),
                                                                        key.value, value, key.extra_state);
  case Kind::window:
    return reinterpret_cast<MPI_Win_delete_attr_function*>(key.remove)(handle_of<MPI_Win>(owner), key.value,
                                                                       value, key.extra_state);
  default:
    return reinterpret_cast<MPI_Comm_delete_attr_function*>(key.remove)(handle_of<MPI_Comm>(owner), key.value,
                                                                        value, key.extra_state);
  }
}

/// A callback's own error code is returned to the program, unless it could be mistaken for one of
/// the library's.
Result callback_failed(const char* which, int key, int returned) {
  int code = returned > 0 && returned < static_cast<int>(base::Code::invalid) ? returned : MPI_ERR_OTHER;
  return base::fail(code, "the {} callback of attribute key {} returned {}", which, key, returned);
}

} // namespace

Result make_attribute_key(Kind kind, void* copy, void* remove, void* extra_state, int& value) {
  Keys& all = keys();
  if (all.next == 0x7fffffff) return base::fail(MPI_ERR_NO_SPACE, "all attribute keys are used up");
  AttributeKey key;
  key.kind = kind;
  key.copy = copy;
  key.remove = remove;
  key.extra_state = extra_state;
  key.value = all.next++;
  all.live.emplace(key.value, key);
  value = key.value;
  return {};
}

Result free_attribute_key(Kind kind, int value) {
  AttributeKey* key = find_attribute_key(kind, value);
  if (key == nullptr) return base::fail(MPI_ERR_KEYVAL, "{} is not an attribute key of this kind", value);
  if (key->freed) return {};
  key->freed = true;
  drop(*key);
  return {};
}

AttributeKey* find_attribute_key(Kind kind, int value) {
  AttributeKey* key = find_live(value);
  return key != nullptr && key->kind == kind ? key : nullptr;
}

AttributeSet::Entry* AttributeSet::find(int key) {
  for (Entry& entry : entries_)
    if (entry.key == key) return &entry;
  return nullptr;
}

/// Runs the delete callback of an attribute that exists, and keeps the entry.
Result AttributeSet::run_delete(Object& owner, int key) {
  Entry* entry = find(key);
  AttributeKey* about = find_live(key);
  if (about->remove == null_function) return {};
  entry->leaving = true;
  int returned = 0;
  try {
    returned = call_delete(*about, owner, entry->value);
  } catch (...) { // from the program
    find(key)->leaving = false;
    throw;
  }
  find(key)->leaving = false;
  if (returned != MPI_SUCCESS) return callback_failed("delete", key, returned);
  return {};
}

Result AttributeSet::set(Object& owner, int key, void* value) {
  AttributeKey* about = find_live(key);
  if (about == nullptr) return base::fail(MPI_ERR_KEYVAL, "{} is not an attribute key", key);
  if (Entry* entry = find(key); entry != nullptr) {
    if (entry->leaving)
      return base::fail(MPI_ERR_KEYVAL, "the attribute of key {} is being deleted by its callback", key);
    NEAR_TRY(run_delete(owner, key));
    find(key)->value = value;
    return {};
  }
  entries_.push_back({key, value});
  ++about->references;
  return {};
}

Result AttributeSet::get(int key, void*& value, bool& found) const {
  found = false;
  for (const Entry& entry : entries_)
    if (entry.key == key) {
      value = entry.value;
      found = true;
    }
  return {};
}

Result AttributeSet::remove(Object& owner, int key) {
  Entry* entry = find(key);
  if (entry == nullptr) return base::fail(MPI_ERR_KEYVAL, "there is no attribute with key {}", key);
  if (entry->leaving)
    return base::fail(MPI_ERR_KEYVAL, "the attribute of key {} is being deleted by its callback", key);
  NEAR_TRY(run_delete(owner, key));
  entries_.erase(entries_.begin() + (find(key) - entries_.data()));
  drop(*find_live(key));
  return {};
}

Result AttributeSet::copy_all(Object& from_owner, const AttributeSet& from, Object& to_owner) {
  for (const std::vector<Entry> originals = from.entries_; const Entry& original : originals) {
    AttributeKey* about = find_live(original.key);
    void* value = nullptr;
    bool still_there = false;
    // An earlier callback may have changed or deleted it.
    NEAR_TRY(from.get(original.key, value, still_there));
    if (!still_there || about->copy == null_function) continue;
    void* copied = value;
    int wanted = 1;
    if (about->copy != dup_function) {
      wanted = 0;
      if (int returned = call_copy(*about, from_owner, value, static_cast<void*>(&copied), &wanted);
          returned != MPI_SUCCESS)
        return callback_failed("copy", original.key, returned);
    }
    if (wanted != 0) NEAR_TRY(set(to_owner, original.key, copied));
  }
  return {};
}

Result AttributeSet::remove_all(Object& owner) {
  while (!entries_.empty()) NEAR_TRY(remove(owner, entries_.back().key));
  return {};
}

} // namespace near::object
