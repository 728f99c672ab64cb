// SPDX-License-Identifier: MIT
//
// Faults of a block in words.
#include <signal.h>

#include <map>

#include "block.hpp"

namespace emulator {
namespace {

std::string to_text(uint3 v) { return text("(", v.x, ", ", v.y, ", ", v.z, ")"); }

}  // namespace

std::string Block::where(const Lane& lane) const {
  return text("block ", to_text(index_), " thread ", to_text(lane.index));
}

Fault Block::too_much_local(const Lane& lane, std::uintptr_t pc) const {
  return fault(lane, pc, "a thread needs more than ", kStackBytes / 1024, " KiB of local memory");
}

// What a lane had on its mind when it stopped in the middle of something.
Fault Block::fault_of_stopped(Lane& lane) {
  if (launch_->failed) return {};       // elsewhere
  mark_accesses(lane, lane.trap != 0);  // it may come of what was read
  if (conflict_) return conflict(lane);
  if (!lane.stopped_by.empty()) return fault(lane, lane.pc, lane.stopped_by);
  if (lane.trap_address - lane.stack < page_bytes()) return too_much_local(lane, lane.pc);
  if (lane.trap == SIGFPE) return fault(lane, lane.pc, "division of an integer by zero");
  // An access that is on record, or one of those that a copy makes.
  if (lane.next)
    for (const Record* r = lane.next;
         r-- != replay_->log(lane.number) && r->pc == lane.next[-1].pc;)
      if (const Event event = r->event(); event <= Event::copy) {
        const Touch touch{r->pc, event == Event::copy ? Event::load : event, lane, r->address(),
                          r->bytes()};
        if (is_misaligned(touch.address, touch.bytes)) return misaligned(touch);
        place(touch);
      }
  if (lane.trap == SIGBUS)
    return fault(lane, lane.pc, "misaligned address, or one that no memory can have");
  return fault(lane, lane.pc, "out-of-bounds access: not device memory");
}

Fault Block::misaligned(const Touch& touch) const {
  return fault(touch, "misaligned ", name(operation(touch.event)), " of ", touch.bytes, " bytes");
}

Fault Block::conflict(const Lane& lane) const {
  const auto& [what, access, address, other, of_copy] = *conflict_;
  const bool own = other.block == number_;
  const bool one_warp = own && other.thread / 32 == number_of(lane) / 32;
  const Buffer* buffer = GlobalMemory::get().find(address);
  const Variable* variable = buffer ? nullptr : last_before(Symbols::get().global, address);
  Block* const owner = owner_of(address);
  if (owner && !access.bulk) {  // what is out of bounds is not called a race
    const Event event = access.operation == Operation::load ? Event::load : Event::store;
    check_shared({access.pc, event, lane, access.address, access.bytes}, *owner);
  }
  const char* also = what.find("scope") != what.npos    ? ""
                     : what.find("atomic") != what.npos ? "; or make both atomic"
                     : one_warp && other.pc == access.pc && what == "write after write"
                         ? "; of stores by one instruction any value may remain"
                         : "";
  const char* how = one_warp ? "since compute capability 7.0 lanes need not run in lockstep, and "
                               "volatile orders nothing between them: __syncwarp() does"
                    : own    ? access.is_volatile
                                   ? "CUDA's volatile is not atomic and orders nothing: "
                                     "__syncthreads() does, or make both atomic"
                                   : "__syncthreads() does"
                             : "a release and an acquire do, or flags with fences";
  return fault(lane, access.pc, owner ? "shared-memory" : "global-memory", " race ",
               one_warp ? "inside a warp: "
               : own    ? "between warps: "
               : owner  ? "between blocks of the cluster: "
                        : "between blocks: ",
               what, " of ",
               owner      ? owner->shared_.place(address)
               : buffer   ? buffer->place(address)
               : variable ? variable->name()
                          : "a variable",
               " with ", own ? "" : "block " + to_text(index_in(launch_->grid, other.block)) + " ",
               "thread ", to_text(index_in(launch_->block, other.thread)), " at ",
               source_line(other.pc).text(),
               of_copy ? "" : text(", which nothing orders (", how, also, ")"));
}

// A read of shared memory that nobody had written.
Fault Block::unwritten() const {
  const auto& [lane, access, owner] = *unwritten_;
  const bool remote = owner != this;
  check_shared({access.pc, Event::load, *lane, access.address, access.bytes}, *owner);
  return fault(*lane, access.pc, "uninitialised ", remote ? "distributed" : "shared",
               " memory: ", name(access.operation), " of ", owner->shared_.variable(access.address),
               remote ? text(" of block ", owner->rank_) : "",
               ", which nobody in the block has written yet");
}

// "; kernel k: 16 threads at the block barrier of k.cu:12 (first: block (0, 0, 0) thread ..."
std::string Block::who_waits() const {
  const auto doing = [&](const Lane& lane) {
    const auto place = [&] { return source_line(lane.pc).text(); };
    // clang-format off: a table
    switch (lane.state) {
      case State::exited: return std::string("have exited");
      case State::at_block_barrier: return "wait at the block barrier of " + place();
      case State::at_cluster_barrier: return "wait at the cluster barrier of " + place();
      case State::at_warp_function: return "wait in a warp function at " + place();
      case State::at_word: return "wait for a word of global memory at " + place();
      case State::at_mbarrier:
        return text("wait for phase ", lane.waits_for->number, " of the mbarrier ",
                    shared_.variable(lane.waits_at), ", which lacks ", lane.waits_for->pending,
                    " arrivals and ", lane.waits_for->bytes - lane.waits_for->under_way,
                    " bytes, at ", place());
      default: return "run at " + source_line(lane.step).text();
    }
    // clang-format on
  };
  std::map<std::string, std::pair<unsigned, const Lane*>> groups;
  for (const Lane& lane : lanes_) {
    auto& [count, first] = groups[doing(lane)];
    if (count++ == 0) first = &lane;
  }
  std::string all = "; kernel " + kernel_name(launch_->kernel);
  const char* separator = ": ";
  for (const auto& [what, group] : groups) {
    all += text(separator, group.first, " threads ", what, " (first ", where(*group.second), ")");
    separator = ", ";
  }
  return all;
}

}  // namespace emulator
