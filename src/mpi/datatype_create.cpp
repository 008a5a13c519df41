// Type constructors: the datatype layer makes the type; this file records how it was made. Source: MPI 5.0,
// sections 5.1.2 to 5.1.13; the records: section 5.1.13, MPI_Type_get_contents.
#include "mpi/impl.h"

#include <algorithm>
#include <new>
#include <stdexcept>

namespace near::mpi::impl {
namespace {

using Numbers = std::vector<MPI_Count>;

/// The arguments of a constructor in the order of MPI_Type_get_contents. For a large constructor, counts and
/// addresses are in one array, and arguments that are an int in both forms in another.
class Contents {
public:
  /// For this many integers (including counts) and addresses.
  Contents(bool large, std::size_t integers, std::size_t addresses = 0) : large_(large) {
    if (large)
      counts_.reserve(integers + addresses);
    else
      integers_.reserve(integers);
  }
  Contents& integer(int value) {
    integers_.push_back(value);
    return *this;
  }
  Contents& integers(const int* values, int n) {
    integers_.insert(integers_.end(), values, values + n);
    return *this;
  }
  Contents& count(MPI_Count value) {
    if (large_)
      counts_.push_back(value);
    else
      integers_.push_back(static_cast<int>(value));
    return *this;
  }
  Contents& counts(const Numbers& values) {
    if (large_) {
      counts_.insert(counts_.end(), values.begin(), values.end());
    } else {
      const std::size_t before = integers_.size();
      integers_.resize(before + values.size());
      std::ranges::transform(values, integers_.data() + before,
                             [](MPI_Count value) { return static_cast<int>(value); });
    }
    return *this;
  }
  Contents& address(MPI_Count value) {
    (large_ ? counts_ : addresses_).push_back(value);
    return *this;
  }
  Contents& addresses(const Numbers& values) {
    auto& all = large_ ? counts_ : addresses_;
    all.insert(all.end(), values.begin(), values.end());
    return *this;
  }
  Result record(int combiner, Datatype& made, std::span<Datatype* const> types) {
    record_envelope(made, combiner, large_, std::move(integers_), std::move(addresses_), std::move(counts_),
                    types);
    return {};
  }
  Result record(int combiner, Datatype& made, Datatype& old) {
    Datatype* types[] = {&old};
    return record(combiner, made, types);
  }

private:
  bool large_;
  std::vector<int> integers_;
  std::vector<MPI_Aint> addresses_;
  std::vector<MPI_Count> counts_;
};

/// Runs a constructor. If memory runs out, frees what has been created and returns an MPI error.
template <class F>
Result constructing(Datatype*& made, F construct) {
  Result result;
  try {
    result = construct();
  } catch (const std::bad_alloc&) {
    result = base::fail(MPI_ERR_NO_MEM, "no memory is left for the constructor's arguments");
  } catch (const std::length_error&) {
    result = base::fail(MPI_ERR_NO_MEM, "the constructor's arrays are longer than memory");
  }
  if (!result.ok() && made != nullptr) {
    release(made);
    made = nullptr;
  }
  return result;
}

Result vector(int combiner, MPI_Count count, MPI_Count block_length, MPI_Count stride, Datatype& old,
              Datatype*& made, bool large) {
  bool in_bytes = combiner == MPI_COMBINER_HVECTOR;
  return constructing(made, [&]() -> Result {
    NEAR_TRY(make_vector(count, block_length, stride, in_bytes, old, made));
    Contents contents(large, 3);
    contents.count(count).count(block_length);
    if (in_bytes)
      contents.address(stride);
    else
      contents.count(stride);
    return contents.record(combiner, *made, old);
  });
}

Result indexed(int combiner, MPI_Count count, Counts lengths, Counts displacements, Datatype& old,
               Datatype*& made, bool large) {
  bool in_bytes = combiner == MPI_COMBINER_HINDEXED;
  return constructing(made, [&]() -> Result {
    Numbers all_lengths = lengths.widen(count), all_displacements = displacements.widen(count);
    NEAR_TRY(make_indexed(all_lengths, all_displacements, in_bytes, old, made));
    const std::size_t n = all_lengths.size();
    Contents contents(large, 1 + (in_bytes ? n : 2 * n), in_bytes ? n : 0);
    contents.count(count).counts(all_lengths);
    if (in_bytes)
      contents.addresses(all_displacements);
    else
      contents.counts(all_displacements);
    return contents.record(combiner, *made, old);
  });
}

Result indexed_block(int combiner, MPI_Count count, MPI_Count block_length, Counts displacements,
                     Datatype& old, Datatype*& made, bool large) {
  bool in_bytes = combiner == MPI_COMBINER_HINDEXED_BLOCK;
  return constructing(made, [&]() -> Result {
    Numbers all = displacements.widen(count);
    NEAR_TRY(make_indexed_block(block_length, all, in_bytes, old, made));
    Contents contents(large, 2 + (in_bytes ? 0 : all.size()), in_bytes ? all.size() : 0);
    contents.count(count).count(block_length);
    if (in_bytes)
      contents.addresses(all);
    else
      contents.counts(all);
    return contents.record(combiner, *made, old);
  });
}

} // namespace

Result Type_contiguous(MPI_Count count, Datatype& oldtype, Datatype*& newtype, bool large) {
  return constructing(newtype, [&]() -> Result {
    NEAR_TRY(make_contiguous(count, oldtype, newtype));
    return Contents(large, 1).count(count).record(MPI_COMBINER_CONTIGUOUS, *newtype, oldtype);
  });
}

Result Type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, Datatype& oldtype,
                   Datatype*& newtype, bool large) {
  return vector(MPI_COMBINER_VECTOR, count, blocklength, stride, oldtype, newtype, large);
}

Result Type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, Datatype& oldtype,
                           Datatype*& newtype, bool large) {
  return vector(MPI_COMBINER_HVECTOR, count, blocklength, stride, oldtype, newtype, large);
}

Result Type_indexed(MPI_Count count, Counts array_of_blocklengths, Counts array_of_displacements,
                    Datatype& oldtype, Datatype*& newtype, bool large) {
  return indexed(MPI_COMBINER_INDEXED, count, array_of_blocklengths, array_of_displacements, oldtype, newtype,
                 large);
}

Result Type_create_hindexed(MPI_Count count, Counts array_of_blocklengths, Counts array_of_displacements,
                            Datatype& oldtype, Datatype*& newtype, bool large) {
  return indexed(MPI_COMBINER_HINDEXED, count, array_of_blocklengths, array_of_displacements, oldtype,
                 newtype, large);
}

Result Type_create_indexed_block(MPI_Count count, MPI_Count blocklength, Counts array_of_displacements,
                                 Datatype& oldtype, Datatype*& newtype, bool large) {
  return indexed_block(MPI_COMBINER_INDEXED_BLOCK, count, blocklength, array_of_displacements, oldtype,
                       newtype, large);
}

Result Type_create_hindexed_block(MPI_Count count, MPI_Count blocklength, Counts array_of_displacements,
                                  Datatype& oldtype, Datatype*& newtype, bool large) {
  return indexed_block(MPI_COMBINER_HINDEXED_BLOCK, count, blocklength, array_of_displacements, oldtype,
                       newtype, large);
}

Result Type_create_struct(MPI_Count count, Counts array_of_blocklengths, Counts array_of_displacements,
                          const MPI_Datatype* array_of_types, Datatype*& newtype, bool large) {
  return constructing(newtype, [&]() -> Result {
    Numbers lengths = array_of_blocklengths.widen(count), displacements = array_of_displacements.widen(count);
    std::vector<Datatype*> types;
    types.reserve(lengths.size());
    for (std::size_t i = 0; i < lengths.size(); ++i)
      types.push_back(datatype::find_datatype(array_of_types[i]));
    NEAR_TRY(make_struct(lengths, displacements, types, newtype));
    return Contents(large, 1 + lengths.size(), displacements.size())
        .count(count)
        .counts(lengths)
        .addresses(displacements)
        .record(MPI_COMBINER_STRUCT, *newtype, types);
  });
}

Result Type_create_subarray(int ndims, Counts array_of_sizes, Counts array_of_subsizes,
                            Counts array_of_starts, int order, Datatype& oldtype, Datatype*& newtype,
                            bool large) {
  return constructing(newtype, [&]() -> Result {
    Numbers sizes = array_of_sizes.widen(ndims), subsizes = array_of_subsizes.widen(ndims),
            starts = array_of_starts.widen(ndims);
    NEAR_TRY(make_subarray(sizes, subsizes, starts, order, oldtype, newtype));
    Contents contents(large, 2 + 3 * sizes.size());
    contents.integer(ndims).counts(sizes).counts(subsizes).counts(starts).integer(order);
    return contents.record(MPI_COMBINER_SUBARRAY, *newtype, oldtype);
  });
}

Result Type_create_darray(int size, int rank, int ndims, Counts array_of_gsizes, const int* array_of_distribs,
                          const int* array_of_dargs, const int* array_of_psizes, int order, Datatype& oldtype,
                          Datatype*& newtype, bool large) {
  return constructing(newtype, [&]() -> Result {
    Numbers sizes = array_of_gsizes.widen(ndims);
    auto n = static_cast<std::size_t>(ndims);
    NEAR_TRY(make_darray(size, rank, sizes, {array_of_distribs, n}, {array_of_dargs, n}, {array_of_psizes, n},
                         order, oldtype, newtype));
    Contents contents(large, 4 + 4 * sizes.size());
    contents.integer(size).integer(rank).integer(ndims).counts(sizes);
    contents.integers(array_of_distribs, ndims).integers(array_of_dargs, ndims);
    contents.integers(array_of_psizes, ndims).integer(order);
    return contents.record(MPI_COMBINER_DARRAY, *newtype, oldtype);
  });
}

Result Type_create_resized(Datatype& oldtype, MPI_Count lb, MPI_Count extent, Datatype*& newtype,
                           bool large) {
  return constructing(newtype, [&]() -> Result {
    NEAR_TRY(make_resized(oldtype, lb, extent, newtype));
    return Contents(large, 0, 2).address(lb).address(extent).record(MPI_COMBINER_RESIZED, *newtype, oldtype);
  });
}

Result Type_dup(Datatype& oldtype, Datatype*& newtype) {
  return constructing(newtype, [&]() -> Result {
    NEAR_TRY(make_duplicate(oldtype, newtype));
    NEAR_TRY(Contents(false, 0).record(MPI_COMBINER_DUP, *newtype, oldtype));
    Result copied = newtype->attributes.copy_all(oldtype, oldtype.attributes, *newtype);
    // Deletes what was copied, and reports the failure of the copy.
    if (!copied.ok()) {
      std::string why(base::failure_text());
      static_cast<void>(newtype->attributes.remove_all(*newtype));
      base::set_failure_text(std::move(why));
    }
    return copied;
  });
}

Result Type_create_f90_real(int p, int r, Datatype*& newtype) {
  return fortran_type(MPI_COMBINER_F90_REAL, p, r, newtype);
}

Result Type_create_f90_complex(int p, int r, Datatype*& newtype) {
  return fortran_type(MPI_COMBINER_F90_COMPLEX, p, r, newtype);
}

Result Type_create_f90_integer(int r, Datatype*& newtype) {
  return fortran_type(MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, r, newtype);
}

Result Type_get_value_index(Datatype& value_type, Datatype& index_type, Datatype*& pair_type) {
  return value_index_type(value_type, index_type, pair_type);
}

Result Type_match_size(int typeclass, int size, Datatype*& datatype) {
  return match_size(typeclass, size, datatype);
}

} // namespace near::mpi::impl
