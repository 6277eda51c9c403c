// The coroutine vocabulary of net: one executor type, one completion token, one timer. Everything that awaits runs on
// the loop thread. as_tuple makes errors values: no await of ours throws. Coroutines are named functions or members,
// never capturing lambdas, and each co_await stands in its own statement without aggregate temporaries around it,
// because g++ 12 destroys those twice (tools/coawait_lint.py checks).
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

namespace chasqui::net {

namespace asio = boost::asio;

using SystemError = boost::system::error_code;

// Concrete, so that Asio completes handlers in place instead of going through a type-erased executor.
using Executor = asio::io_context::executor_type;

template <class T = void>
using Awaitable = asio::awaitable<T, Executor>;

// `const auto [error, n] = co_await socket.async_read_some(buffer, kAwait);`
inline constexpr asio::as_tuple_t<asio::use_awaitable_t<Executor>> kAwait{asio::use_awaitable_t<Executor>{}};

using Timer = asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>,
                                         Executor>;

}  // namespace chasqui::net
