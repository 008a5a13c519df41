// Window data. Nothing here communicates: creation, epochs and access are in rma/. Source: MPI 5.0,
// chapter 12.
#pragma once

#include "object/communicator.h"

#include <memory>
#include <string>

namespace near::object {

/// What rma stores about a window.
struct WindowExtension {
  virtual ~WindowExtension() = default;
};

struct Window : Object {
  Communicator* communicator = nullptr;  ///< its own, on the processes that made the window; owned
  ErrorHandler* error_handler = nullptr; ///< owned reference
  AttributeSet attributes;
  std::string name;
  Info* info = nullptr; ///< hints in force; owned, may be null
  // This process's part, as reported by the predefined attributes: two
  // of them are addresses of these members.
  void* base = nullptr;
  MPI_Aint size = 0;
  int unit = 1; ///< of displacements, in bytes; 0 if it does not fit in an int (MPI_Win_create_c)
  int flavor = 0;
  int model = MPI_WIN_UNIFIED;
  std::unique_ptr<WindowExtension> extension;
};

Pool<Window, Kind::window>& windows();
/// Returns the live window with this handle; nullptr for MPI_WIN_NULL and any other value.
Window* find_window(MPI_Win handle);
/// Makes a window on `communicator`, whose reference it takes over, even on failure; returns nullptr if
/// memory or handles are exhausted.
Window* make_window(Communicator* communicator);
/// Destroys the window. The caller has deleted its attributes.
void destroy(Window* window);

/// Describes the window in messages: the user's name for it, or "window 0x60000001".
std::string describe(const Window& window);

inline MPI_Win public_handle(const Window& window) {
  return reinterpret_cast<MPI_Win>(static_cast<std::uintptr_t>(window.handle));
}

} // namespace near::object
