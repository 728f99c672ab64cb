// SPDX-License-Identifier: MIT
//
// Faults of a block in words.
#include <signal.h>

#include <filesystem>
#include <map>

#include "block.hpp"
#include "symbols.hpp"

namespace emulator {
namespace {

std::string to_text(uint3 v) {
  std::string text = "(";  // gcc 12 warns of "(" + ... for no reason
  return text + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}

}  // namespace

std::string Block::where(const Lane& lane) const {
  return "block " + to_text(index_) + " " + thread(lane);
}

std::string Block::thread(const Lane& lane) { return "thread " + to_text(lane.index); }

Fault Block::fault(const std::string& what, const Lane& lane, std::uintptr_t pc) const {
  return {what + "; kernel " + kernel_name(launch_->kernel) + " at " + source_line(pc).text() +
          ", " + where(lane)};
}

Fault Block::too_much_local(const Lane& lane, std::uintptr_t pc) const {
  const std::string most = std::to_string(kStackBytes / 1024);
  return fault("a thread needs more than " + most + " KiB of local memory", lane, pc);
}

// What a lane had on its mind when it stopped in the middle of something.
Fault Block::fault_of_stopped(const Lane& lane) {
  if (launch_->failed) return {};  // elsewhere
  if (conflict_) return conflict(lane);
  if (!lane.stopped_by.empty()) return fault(lane.stopped_by, lane, lane.pc);
  const Record* first = log(lane.number);
  if (lane.trap_address - lane.stack < page_bytes()) return too_much_local(lane, lane.pc);
  if (lane.trap == SIGFPE) return fault("division of an integer by zero", lane, lane.pc);
  // An access that is on record, or one of those that a copy makes.
  if (lane.next)
    for (const Record* r = lane.next; r-- != first && r->pc == lane.next[-1].pc;)
      if (r->event() <= Event::copy)
        place(r->address(), r->bytes(), r->event() == Event::copy ? Event::load : r->event(), r->pc,
              lane.number);
  return fault("out-of-bounds access: not device memory", lane, lane.pc);
}

Fault Block::conflict(const Lane& lane) const {
  const auto& [what, address, pc, other] = *conflict_;
  const Buffer* buffer = GlobalMemory::get().find(address);
  const Variable* variable = buffer ? nullptr : last_before(Symbols::get().global(), address);
  const dim3 grid = launch_->grid, block = launch_->block;
  const auto number = static_cast<unsigned>(other.block);
  const auto t = static_cast<unsigned>(other.thread);
  return fault(std::string("global-memory race between blocks: ") + what + " of " +
                   (buffer ? "byte " + std::to_string(address - buffer->start) +
                                 " of a buffer of " + std::to_string(buffer->bytes)
                    : variable ? variable->name()
                               : "a variable") +
                   " with block " +
                   to_text({number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y}) +
                   " thread " +
                   to_text({t % block.x, t / block.x % block.y, t / block.x / block.y}) + " at " +
                   source_line(other.pc).text() +
                   ", which nothing orders (a release and an acquire do, or flags with fences)",
               lane, pc);
}

// "; kernel k: 16 threads at the block barrier of k.cu:12 (first: block (0, 0, 0) thread ..."
std::string Block::who_waits() const {
  std::map<std::string, std::pair<unsigned, const Lane*>> groups;
  for (const Lane& lane : lanes_) {
    std::string what;
    switch (lane.state) {
      case State::exited:
        what = "have exited";
        break;
      case State::at_block_barrier:
      case State::at_cluster_barrier:
        what = std::string("wait at the ") +
               (lane.state == State::at_block_barrier ? "block" : "cluster") + " barrier of " +
               std::filesystem::path(lane.file).filename().string() + ":" +
               std::to_string(lane.line);
        break;
      case State::at_warp_function:
        what = "wait in a warp function at " + source_line(lane.pc).text();
        break;
      case State::at_word:
        what = "wait for a word of global memory at " + source_line(lane.pc).text();
        break;
      case State::at_mbarrier:
        what = "wait for phase " + std::to_string(lane.waits_for->number) + " of the mbarrier " +
               shared_.variable(shared_.offset(lane.waits_at)) + ", which lacks " +
               std::to_string(lane.waits_for->pending) + " arrivals and " +
               std::to_string(lane.waits_for->bytes - lane.waits_for->under_way) + " bytes, at " +
               source_line(lane.pc).text();
        break;
      default:
        what = "run at " + source_line(lane.step).text();
        break;
    }
    auto& [count, first] = groups[what];
    if (count++ == 0) first = &lane;
  }
  std::string text = "; kernel " + kernel_name(launch_->kernel);
  const char* separator = ": ";
  for (const auto& [what, group] : groups) {
    text += separator + std::to_string(group.first) + " threads " + what + " (first " +
            where(*group.second) + ")";
    separator = ", ";
  }
  return text;
}

}  // namespace emulator
