// Memory as the kernel gives it: shared files in memory, mappings, placement and reservation.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace near::os {

using base::Result;

std::size_t page_size();
/// Bytes of physical memory of the machine; 0 when unknown.
std::uint64_t physical_memory();
/// Bytes of the largest cache that this processor can reach, as the kernel knows it; 0 when it does not. The
/// processor's own word (sysconf) counts other sockets in on some machines.
std::uint64_t largest_cache();
/// RLIMIT_AS in bytes; UINT64_MAX when unlimited.
std::uint64_t address_space_limit();

/// A memfd of `bytes`, sparse, close-on-exec. Not yet sealed.
Result make_shared_file(const char* name, std::uint64_t bytes, int& descriptor);
/// Forbids every later change of its length.
Result seal_length(int descriptor);
/// True when the descriptor is a memory file whose length is sealed; `bytes` is its length.
bool is_sealed(int descriptor, std::uint64_t& bytes);
/// The inode number, to recognise a descriptor; 0 when it is not open.
std::uint64_t inode_of(int descriptor);
void close_descriptor(int descriptor);
/// Sets or clears close-on-exec.
Result keep_over_exec(int descriptor, bool keep);
/// Opens /proc/<pid>/fd/<number> for reading and writing, or reading alone.
Result open_descriptor_of(std::int32_t pid, int number, bool writable, int& descriptor);

/// Maps the whole file, shared, without reserving memory for it. Code::limit when the address space is too
/// small.
Result map_shared(int descriptor, std::uint64_t bytes, bool writable, std::byte*& base);
void unmap(void* base, std::uint64_t bytes);
/// A forked child does not get the range, and core files leave it out.
Result keep_from_children_and_dumps(void* base, std::uint64_t bytes);

/// The NUMA node that this thread runs on.
int current_node();
/// Asks for pages of the range on `node`, others when it is full. Code::refused or Code::unsupported where a
/// sandbox forbids policies or the kernel has none: placement then rests on first touch.
Result prefer_node(void* base, std::size_t bytes, int node);
/// Allocates every page of the range now, written by this thread. Code::no_memory when the kernel has none
/// left.
Result populate(void* base, std::size_t bytes);
/// Gives the pages of a shared range back; it reads as zeros afterwards.
Result give_back(void* base, std::size_t bytes);

} // namespace near::os
