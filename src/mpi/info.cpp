// Info objects. Source: MPI 5.0, chapter 10.
#include "mpi/environment.h"
#include "mpi/impl.h"

namespace near::mpi::impl {

namespace {

// MPI_MAX_INFO_KEY and MPI_MAX_INFO_VAL count the terminating null character.
Result check_key(const char* key) {
  std::size_t length = strnlen(key, MPI_MAX_INFO_KEY);
  if (length == 0) return base::fail(MPI_ERR_INFO_KEY, "the key is empty");
  if (length == MPI_MAX_INFO_KEY)
    return base::fail(MPI_ERR_INFO_KEY, "the key has more than {} characters", MPI_MAX_INFO_KEY - 1);
  return {};
}

Result check_writable(const Info& info) {
  if (!info.predefined) return {};
  return base::fail(MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed");
}

/// MPI_Init changes the contents of MPI_INFO_ENV, so they are rewritten at each access.
Info& look_at(Info* info) {
  if (info->predefined) {
    info->entries.clear();
    describe_environment(0, nullptr, *info);
  }
  return *info;
}

Result check_made(const Info* info) {
  if (info != nullptr) return {};
  return base::fail(MPI_ERR_NO_MEM, "no memory or no handle for another info");
}

} // namespace

Result Info_create(Info*& info) {
  info = object::make_info();
  return check_made(info);
}

Result Info_create_env(int argc, char** argv, Info*& info) {
  info = object::make_info();
  NEAR_TRY(check_made(info));
  describe_environment(argc, argv, *info);
  return {};
}

Result Info_dup(Info* info, Info*& newinfo) {
  newinfo = object::copy_info(look_at(info));
  return check_made(newinfo);
}

Result Info_free(Info& info) {
  object::release(&info);
  return {};
}

Result Info_set(Info* info, const char* key, const char* value) {
  NEAR_TRY(check_writable(*info));
  NEAR_TRY(check_key(key));
  if (strnlen(value, MPI_MAX_INFO_VAL) == MPI_MAX_INFO_VAL)
    return base::fail(MPI_ERR_INFO_VALUE, "the value has more than {} characters", MPI_MAX_INFO_VAL - 1);
  info->set(key, value);
  return {};
}

Result Info_delete(Info* info, const char* key) {
  NEAR_TRY(check_writable(*info));
  NEAR_TRY(check_key(key));
  if (!info->remove(key)) return base::fail(MPI_ERR_INFO_NOKEY, "there is no key \"{}\"", key);
  return {};
}

Result Info_get(Info* info, const char* key, int valuelen, char* value, int* flag) {
  NEAR_TRY(check_key(key));
  if (valuelen < 0) return base::fail(MPI_ERR_ARG, "valuelen is {}, which is negative", valuelen);
  const std::string* found = look_at(info).find(key);
  *flag = found != nullptr ? 1 : 0;
  if (found != nullptr) {
    // `value` has room for valuelen characters and the terminator.
    std::size_t bytes = std::min(found->size(), static_cast<std::size_t>(valuelen));
    std::memcpy(value, found->data(), bytes);
    value[bytes] = '\0';
  }
  return {};
}

Result Info_get_string(Info* info, const char* key, int* buflen, char* value, int* flag) {
  NEAR_TRY(check_key(key));
  if (*buflen < 0) return base::fail(MPI_ERR_ARG, "buflen is {}, which is negative", *buflen);
  if (*buflen > 0 && value == nullptr)
    return base::fail(MPI_ERR_ARG, "value is a null pointer, but buflen is {}", *buflen);
  const std::string* found = look_at(info).find(key);
  *flag = found != nullptr ? 1 : 0;
  if (found == nullptr) return {};
  if (*buflen > 0) {
    std::size_t bytes = std::min(found->size(), static_cast<std::size_t>(*buflen) - 1);
    std::memcpy(value, found->data(), bytes);
    value[bytes] = '\0';
  }
  *buflen = static_cast<int>(found->size()) + 1;
  return {};
}

Result Info_get_valuelen(Info* info, const char* key, int* valuelen, int* flag) {
  NEAR_TRY(check_key(key));
  const std::string* found = look_at(info).find(key);
  *flag = found != nullptr ? 1 : 0;
  if (found != nullptr) *valuelen = static_cast<int>(found->size());
  return {};
}

Result Info_get_nkeys(Info* info, int* nkeys) {
  *nkeys = static_cast<int>(look_at(info).entries.size());
  return {};
}

Result Info_get_nthkey(Info* info, int n, char* key) {
  const auto& entries = look_at(info).entries;
  if (n < 0 || static_cast<std::size_t>(n) >= entries.size())
    return base::fail(MPI_ERR_ARG, "there is no key {}: the info has {}", n, entries.size());
  const std::string& name = entries[static_cast<std::size_t>(n)].first;
  std::memcpy(key, name.c_str(), name.size() + 1);
  return {};
}

} // namespace near::mpi::impl
