// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lane.hpp"
#include "requests.hpp"

namespace emulator {

/// What a lane has recorded and nobody has replayed yet.
struct Log {
  const Record* next;
  const Record* end;
  bool more;            ///< the lane has not come to a wait: it will go on recording
  bool waits;           ///< once other warps let it; lanes of its own may wait for it
  std::uint64_t* step;  ///< the last basic block that was replayed
};

/// Turns the records of a warp's lanes, which ran one after the other, into what the warp would
/// have done in lockstep: lanes that diverge at a branch run path by path and join again where all
/// paths meet, at the branch's immediate post-dominator.
///
/// The control flow is known as far as the lanes themselves went, so nothing depends on other warps
/// or on the order in which blocks ran.
class WarpReplay {
 public:
  /// Tells the block what its warp did, instruction by instruction.
  explicit WarpReplay(class Block& block);
  ~WarpReplay();

  /// Goes on until a lane that has `more` to record has nothing left; with `all` until all logs are
  /// empty. Logs are advanced.
  void replay(std::span<Log> logs, bool all);

 private:
  // A path that some lanes are on, up to where it joins the path below it.
  struct Path {
    std::uint32_t lanes;
    std::uint64_t branch;  // basic block at whose end it parted, 0: none
    std::uint64_t joins;   // basic block where it meets the others, 0: the end
    std::uint64_t step;    // the basic block that it is in
  };
  bool step_together(Path& path, std::span<Log> logs);
  void diverge(std::size_t at, std::span<Log> logs, std::uint32_t active, std::uint64_t join);

  Block& block_;
  std::vector<Path> paths_;
  std::unique_ptr<class FlowGraph> graph_;
};

}  // namespace emulator
