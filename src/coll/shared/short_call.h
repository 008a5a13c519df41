// A nonblocking or persistent call with little data: its algorithm is executed instead of recorded.
//
// Recording a call and running its steps takes several times as long as executing them. If the data is one
// chunk, algorithms that use an area do nothing but publish and read. So the algorithm is executed once when the call is made,
// up to the first read that would wait, and again when everything that it reads is there; what it has published by then
// is not published again (AreaCall::Part). Calls that have a straight form (straight.h) go straight where they can, and execute its
// halves otherwise.
#pragma once

#include "coll/registry.h"
#include "coll/shared/area_call.h"
#include "p2p/p2p.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace near::coll {

class ShortCall final : public p2p::Schedule {
public:
  /// The schedule of the call if it may be executed that way; else null, and the call has to be recorded. All ranks decide
  /// alike, except that each one looks at its own datatypes. `own`: the area of a persistent call, which is kept if there
  /// is a schedule.
  static std::unique_ptr<ShortCall> make(const Call& call, Communicator& communicator, Area& area,
                                         std::unique_ptr<AreaExtension>& own);

  /// `function` is null if the call has a straight form.
  ShortCall(const Call& call, Communicator& communicator, Area& area, Function function, MPI_Count bytes);
  /// The rest of a call of start_straight().
  ShortCall(const Call& call, Communicator& communicator, AreaCall&& rest);
  ~ShortCall() override;
  ShortCall(const ShortCall&) = delete;
  ShortCall& operator=(const ShortCall&) = delete;
  // From memory of earlier calls.
  static void* operator new(std::size_t size);
  static void operator delete(void* memory, std::size_t size);

  Result begin() override;
  bool advance(p2p::Completion& completion) override;
  bool watches_memory() const override { return true; }
  bool may_advance() const override;
  void leave() override { area_call_.leave(); }
  std::string_view sentence() const override { return sentence_; }

private:
  void keep_types_and_counts();
  bool can_read() const;
  void note(Result result);
  void execute(AreaCall::Part part);
  bool execute();

  std::vector<MPI_Count> counts_, displacements_; ///< the call's own, since programs free theirs early
  Call call_;
  Communicator& communicator_;
  std::unique_ptr<AreaExtension> own_; ///< before what uses it
  const Function function_;
  const MPI_Count bytes_;
  AreaCall area_call_;
  const RankRange read_;             ///< the ranks that this one reads
  mutable int next_ = 0;             ///< those of them before it have published
  bool has_begun_ = false;           ///< and has no request yet
  bool is_over_ = false;             ///< since it began: it went straight
  std::array<Datatype*, 3> types_{}; ///< the call's own references; null: predefined
  Result outcome_;
  std::string sentence_;
};

} // namespace near::coll
