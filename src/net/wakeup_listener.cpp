#include "net/wakeup_listener.h"

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <utility>

namespace chasqui::net {
namespace {

constexpr Duration kPoll = milliseconds(2);

}  // namespace

// Kept alive by the pending wait, so that a listener may be destroyed by its own callback.
struct WakeupListener::State : std::enable_shared_from_this<State> {
  State(EventLoop& event_loop, Wakeup& source, std::function<void()> callback)
      : loop(event_loop),
        wakeup(source),
        on_wakeup(std::move(callback)),
        descriptor(event_loop.executor()),
        timer(event_loop.executor()) {
    if (wakeup.kind() != Wakeup::Kind::polling) descriptor.assign(wakeup.fd());
  }
  // The descriptor belongs to the Wakeup.
  ~State() {
    if (descriptor.is_open()) descriptor.release();
  }

  void arm() {
    const auto on_ready = [self = shared_from_this()](SystemError error) { self->ready(error); };
    if (descriptor.is_open()) {
      descriptor.async_wait(decltype(descriptor)::wait_read, on_ready);
    } else {
      timer.expires_after(kPoll);
      timer.async_wait(on_ready);
    }
  }

  void ready(SystemError error) {
    if (error || stopped) return;
    loop.turn_begins();
    wakeup.acknowledge();
    on_wakeup();
    if (!stopped) arm();
  }

  void stop() {
    stopped = true;
    if (descriptor.is_open()) descriptor.release();
    timer.cancel();
  }

  EventLoop& loop;
  Wakeup& wakeup;
  const std::function<void()> on_wakeup;
  asio::posix::basic_stream_descriptor<Executor> descriptor;
  Timer timer;
  bool stopped = false;
};

WakeupListener::WakeupListener(EventLoop& loop, Wakeup& wakeup, std::function<void()> on_wakeup)
    : state_(std::make_shared<State>(loop, wakeup, std::move(on_wakeup))) {
  state_->arm();
}

WakeupListener::~WakeupListener() { state_->stop(); }

}  // namespace chasqui::net
