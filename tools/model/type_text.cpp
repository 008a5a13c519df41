#include "model/type_text.h"

#include "base/text.h"

#include <cctype>
#include <charconv>
#include <iterator>
#include <string>
#include <vector>

namespace near::model {

using base::Code;
using base::fail;
using datatype::Datatype;

namespace {

struct Named {
  std::string_view name;
  MPI_Datatype handle;
};
const Named basic_types[] = {
    {"char", MPI_CHAR},
    {"signed_char", MPI_SIGNED_CHAR},
    {"unsigned_char", MPI_UNSIGNED_CHAR},
    {"byte", MPI_BYTE},
    {"short", MPI_SHORT},
    {"unsigned_short", MPI_UNSIGNED_SHORT},
    {"int", MPI_INT},
    {"unsigned", MPI_UNSIGNED},
    {"unsigned_int", MPI_UNSIGNED},
    {"long", MPI_LONG},
    {"unsigned_long", MPI_UNSIGNED_LONG},
    {"long_long", MPI_LONG_LONG},
    {"unsigned_long_long", MPI_UNSIGNED_LONG_LONG},
    {"float", MPI_FLOAT},
    {"double", MPI_DOUBLE},
    {"long_double", MPI_LONG_DOUBLE},
    {"int8_t", MPI_INT8_T},
    {"int16_t", MPI_INT16_T},
    {"int32_t", MPI_INT32_T},
    {"int64_t", MPI_INT64_T},
    {"uint8_t", MPI_UINT8_T},
    {"uint16_t", MPI_UINT16_T},
    {"uint32_t", MPI_UINT32_T},
    {"uint64_t", MPI_UINT64_T},
};
constexpr std::string_view constructors[] = {"vector",        "hvector",  "contiguous", "indexed",
                                             "indexed_block", "subarray", "resized"};

/// Reads the text from left to right; each function reads what its name says.
class Reader {
public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result whole(HeldType& made) {
    NEAR_TRY(type(made, 0));
    skip_spaces();
    if (at_ != text_.size()) return expected("nothing more");
    return {};
  }

private:
  static constexpr int deepest = 32;
  using Numbers = std::vector<MPI_Count>;

  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  Result expected(std::string_view what) const {
    const std::string_view rest = text_.substr(std::min(at_, text_.size())).substr(0, 20);
    return fail(Code::invalid, "the datatype '{}' is not understood: {} is expected {}", text_, what,
                rest.empty() ? std::string("at the end") : base::format("where '{}' stands", rest));
  }
  Result sign(char wanted) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != wanted) return expected(base::format("'{}'", wanted));
    ++at_;
    return {};
  }
  bool next_is(char wanted) {
    skip_spaces();
    return at_ < text_.size() && text_[at_] == wanted;
  }
  Result number(MPI_Count& value) {
    skip_spaces();
    const char* const first = text_.data() + at_;
    auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error != std::errc{}) return expected("a whole number");
    at_ += static_cast<std::size_t>(end - first);
    return {};
  }
  /// A number and a comma.
  Result argument(MPI_Count& value) {
    NEAR_TRY(number(value));
    return sign(',');
  }
  /// Numbers in brackets, and a comma.
  Result list(Numbers& values) {
    NEAR_TRY(sign('['));
    for (bool first = true; !next_is(']'); first = false) {
      if (!first) NEAR_TRY(sign(','));
      NEAR_TRY(number(values.emplace_back()));
    }
    NEAR_TRY(sign(']'));
    return sign(',');
  }
  std::string_view word() {
    skip_spaces();
    const std::size_t first = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    return text_.substr(first, at_ - first);
  }

  Result unknown(std::string_view name) const {
    std::vector<std::string_view> known(std::begin(constructors), std::end(constructors));
    for (const Named& each : basic_types) known.push_back(each.name);
    return fail(Code::invalid, "the datatype '{}' is not understood: there is no type '{}'{}", text_, name,
                base::did_you_mean(name, known));
  }
  Result basic(std::string_view name, HeldType& made) const {
    for (const Named& each : basic_types)
      if (name == each.name)
        return datatype::make_duplicate(*datatype::find_datatype(each.handle), made.slot());
    constexpr auto first = datatype::PredefinedTypes::first_handle;
    for (std::uintptr_t handle = first;
         name.starts_with("MPI_") && handle < first + sizeof(datatype::Datatypes::contiguous_sizes); ++handle)
      if (Datatype* const type = datatype::find_predefined(reinterpret_cast<MPI_Datatype>(handle));
          type != nullptr && name == type->name)
        return datatype::make_duplicate(*type, made.slot());
    return unknown(name);
  }
  Result type(HeldType& made, int depth) {
    if (depth > deepest) return fail(Code::invalid, "the datatype nests more than {} types", deepest);
    const std::string_view name = word();
    if (name.empty()) return expected("a datatype, such as double or vector(1000,1,16,double),");
    if (!next_is('(')) return basic(name, made);
    NEAR_TRY(sign('('));
    NEAR_TRY(constructed(name, made, depth));
    return sign(')');
  }
  Result constructed(std::string_view name, HeldType& made, int depth) {
    if (name == "vector" || name == "hvector") return vector(name == "hvector", made, depth);
    if (name == "contiguous") return contiguous(made, depth);
    if (name == "indexed") return indexed(made, depth);
    if (name == "indexed_block") return indexed_block(made, depth);
    if (name == "subarray") return subarray(made, depth);
    if (name == "resized") return resized(made, depth);
    return unknown(name);
  }
  Result vector(bool in_bytes, HeldType& made, int depth) {
    MPI_Count count = 0, length = 0, stride = 0;
    HeldType old;
    NEAR_TRY(argument(count));
    NEAR_TRY(argument(length));
    NEAR_TRY(argument(stride));
    NEAR_TRY(type(old, depth + 1));
    return datatype::make_vector(count, length, stride, in_bytes, *old, made.slot());
  }
  Result contiguous(HeldType& made, int depth) {
    MPI_Count count = 0;
    HeldType old;
    NEAR_TRY(argument(count));
    NEAR_TRY(type(old, depth + 1));
    return datatype::make_contiguous(count, *old, made.slot());
  }
  Result indexed(HeldType& made, int depth) {
    Numbers lengths, displacements;
    HeldType old;
    NEAR_TRY(list(lengths));
    NEAR_TRY(list(displacements));
    NEAR_TRY(type(old, depth + 1));
    NEAR_TRY(equally_long("block lengths", lengths, "displacements", displacements));
    return datatype::make_indexed(lengths, displacements, false, *old, made.slot());
  }
  Result indexed_block(HeldType& made, int depth) {
    MPI_Count length = 0;
    Numbers displacements;
    HeldType old;
    NEAR_TRY(argument(length));
    NEAR_TRY(list(displacements));
    NEAR_TRY(type(old, depth + 1));
    return datatype::make_indexed_block(length, displacements, false, *old, made.slot());
  }
  Result subarray(HeldType& made, int depth) {
    Numbers sizes, parts, starts;
    HeldType old;
    NEAR_TRY(list(sizes));
    NEAR_TRY(list(parts));
    NEAR_TRY(list(starts));
    NEAR_TRY(type(old, depth + 1));
    NEAR_TRY(equally_long("sizes", sizes, "sizes of the part", parts));
    NEAR_TRY(equally_long("sizes", sizes, "starts", starts));
    return datatype::make_subarray(sizes, parts, starts, MPI_ORDER_C, *old, made.slot());
  }
  Result resized(HeldType& made, int depth) {
    MPI_Count lower = 0, extent = 0;
    HeldType old;
    NEAR_TRY(argument(lower));
    NEAR_TRY(argument(extent));
    NEAR_TRY(type(old, depth + 1));
    return datatype::make_resized(*old, lower, extent, made.slot());
  }

  static Result equally_long(std::string_view one, const Numbers& first, std::string_view other,
                             const Numbers& second) {
    if (first.size() == second.size()) return {};
    return fail(Code::invalid, "there are {} {}, but {} {}", first.size(), one, second.size(), other);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

} // namespace

Result parse_type(std::string_view text, HeldType& made) {
  NEAR_TRY(datatype::make_predefined_types());
  NEAR_TRY(Reader(text).whole(made));
  return datatype::commit(*made);
}

} // namespace near::model
