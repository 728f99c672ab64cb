// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "lane.hpp"
#include "requests.hpp"

namespace emulator {

struct LaneLog;

/// Turns the records of a warp's lanes, which ran one after the other, into what the warp would
/// have done in lockstep: lanes that diverge at a branch run path by path and join again where all
/// paths meet, at the branch's immediate post-dominator.
///
/// The control flow is known as far as the lanes themselves went, so nothing depends on other warps
/// or on the order in which blocks ran.
class WarpReplay {
 public:
  static constexpr std::size_t kLogRecords = 4096;  ///< a lane

  /// Tells the block what its warp did, instruction by instruction.
  explicit WarpReplay(class Block& block);
  ~WarpReplay();

  /// Where the lane of that number in its warp records.
  Record* log(std::size_t lane) const { return logs_.get() + 1 + lane * kLogStride; }
  /// Goes on until a lane that has more to record has nothing left; with `all` until all logs are
  /// empty. What was replayed is no longer in the logs.
  void replay(std::span<Lane> lanes, bool all);

 private:
  static constexpr std::size_t kLogStride = kLogRecords + 12;  // they start in different cache sets
  // A path that some lanes are on, up to where it joins the path below it.
  struct Path {
    std::uint32_t lanes;
    std::uint64_t branch;  // basic block at whose end it parted, 0: none
    std::uint64_t joins;   // basic block where it meets the others, 0: the end
    std::uint64_t step;    // the basic block that it is in
  };
  void go_together(Path& path, std::span<LaneLog> logs, std::uint32_t active, std::size_t count);
  void diverge(std::span<LaneLog> logs, std::uint32_t active, std::uint64_t join);

  Block& block_;
  // kLogStride records a lane; before each log an empty one. Pages come when they are touched.
  std::unique_ptr<Record[], decltype(&std::free)> logs_;
  std::vector<Path> paths_;  // the last one runs
  std::unique_ptr<class FlowGraph> graph_;
};

}  // namespace emulator
