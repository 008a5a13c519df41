#include "os/import.h"

#include "os/memory.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

namespace near::os {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t import_types[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT};
#elif defined(__aarch64__)
constexpr std::uint32_t import_types[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT};
#else
constexpr std::uint32_t import_types[] = {0};
#endif

/// What a library's dynamic section says about its imports.
struct Imports {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * tables[2] =
      {}; ///< of functions called through the procedure linkage table, and of all others
  std::size_t bytes[2] = {};
};

Imports imports_of(const link_map& library) {
  Imports found;
  for (const ElfW(Dyn)* each = library.l_ld; each->d_tag != DT_NULL; ++each) {
    // The C library's loader has added the library's address to these values.
    const auto* at = reinterpret_cast<const std::byte*>(each->d_un.d_ptr);
    switch (each->d_tag) {
    case DT_SYMTAB: found.symbols = reinterpret_cast<const ElfW(Sym)*>(at); break;
    case DT_STRTAB: found.names = reinterpret_cast<const char*>(at); break;
    case DT_JMPREL: found.tables[0] = reinterpret_cast<const ElfW(Rela)*>(at); break;
    case DT_PLTRELSZ: found.bytes[0] = each->d_un.d_val; break;
    case DT_RELA: found.tables[1] = reinterpret_cast<const ElfW(Rela)*>(at); break;
    case DT_RELASZ: found.bytes[1] = each->d_un.d_val; break;
    default: break;
    }
  }
  return found;
}

bool is_import(std::uint32_t type) {
  for (const std::uint32_t each : import_types)
    if (type == each) return true;
  return false;
}

void** place_of(const link_map& library, const char* name) {
  const Imports imports = imports_of(library);
  if (imports.symbols == nullptr || imports.names == nullptr) return nullptr;
  for (int which = 0; which < 2; ++which)
    for (std::size_t i = 0; i < imports.bytes[which] / sizeof(ElfW(Rela)); ++i) {
      const ElfW(Rela)& each = imports.tables[which][i];
      if (!is_import(ELF64_R_TYPE(each.r_info))) continue;
      if (std::strcmp(imports.names + imports.symbols[ELF64_R_SYM(each.r_info)].st_name, name) == 0)
        return reinterpret_cast<void**>(library.l_addr + each.r_offset);
    }
  return nullptr;
}

/// Whether the loader makes this memory read-only once it has resolved what the library imports. It does if the library asks for
/// that and resolves nothing later; otherwise the memory must remain writable.
struct Protection {
  std::uintptr_t base, offset;
  bool found = false;

  static int look(dl_phdr_info* library, std::size_t, void* data) {
    auto& self = *static_cast<Protection*>(data);
    if (library->dlpi_addr != self.base) return 0;
    for (int i = 0; i < library->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = library->dlpi_phdr[i];
      // The loader protects whole pages only.
      const std::uintptr_t end = (part.p_vaddr + part.p_memsz) / page_size() * page_size();
      if (part.p_type == PT_GNU_RELRO && self.offset >= part.p_vaddr && self.offset < end) self.found = true;
    }
    return 1;
  }
};

/// Sets the access to the page that contains `place`.
bool allow(void** place, int access) {
  const std::uintptr_t page = page_size();
  return mprotect(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(place) / page * page), page,
                  access) == 0;
}

} // namespace

void ReplacedImport::replace(void* library, const char* name, void* replacement) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return;
#ifdef __GLIBC__ // other C libraries leave the file's addresses in the dynamic section
  place_ = place_of(*map, name);
#endif
  if (place_ == nullptr) return;
  Protection protection{map->l_addr, reinterpret_cast<std::uintptr_t>(place_) - map->l_addr};
  (void)dl_iterate_phdr(Protection::look, &protection);
  is_protected_ = protection.found;
  original_ = *place_;
  if (!write(replacement)) place_ = nullptr;
}

ReplacedImport::~ReplacedImport() {
  if (place_ != nullptr) (void)write(original_);
}

bool ReplacedImport::write(void* function) {
  if (is_protected_ && !allow(place_, PROT_READ | PROT_WRITE)) return false;
  *const_cast<void* volatile*>(place_) = function; // in one store: other threads may be calling the function
  if (is_protected_) (void)allow(place_, PROT_READ);
  return true;
}

} // namespace near::os
