// The machine's libzmq, loaded when --kv-events asks for it: all else starts without it. The functions are declared
// here, as its ABI has had them since version 4.0, so that no build needs it. Loaded once, by the thread that asks
// first; then constant.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace chasqui::publish {

struct alignas(void*) ZmqMessage {
  std::array<unsigned char, 64> opaque{};
};
struct ZmqPollItem {
  void* socket = nullptr;  // null: `fd` counts
  int fd = -1;
  short events = 0;
  short revents = 0;
};

enum class ZmqSocketKind : int { router = 6, xpub = 9 };
enum class ZmqOption : int {
  more = 13,
  linger = 17,
  frame_bytes = 22,
  send_queue = 23,
  receive_queue = 24,
  endpoint = 32,
  never_drop = 33,
  all_subscriptions = 40,
  ipv6 = 42,
  ping_interval = 75,
  ping_lifetime = 76,
  ping_timeout = 77,
  unsent_timeout = 80
};
constexpr int kZmqDontWait = 1;
constexpr int kZmqSendMore = 2;
constexpr short kZmqReadable = 1;

struct ZmqLibrary {
  void* (*ctx_new)() = nullptr;
  int (*ctx_term)(void* context) = nullptr;
  void* (*socket)(void* context, int kind) = nullptr;
  int (*close)(void* socket) = nullptr;
  int (*bind)(void* socket, const char* endpoint) = nullptr;
  int (*connect)(void* socket, const char* endpoint) = nullptr;
  int (*setsockopt)(void* socket, int option, const void* value, std::size_t bytes) = nullptr;
  int (*getsockopt)(void* socket, int option, void* value, std::size_t* bytes) = nullptr;
  int (*poll)(ZmqPollItem* items, int count, long milliseconds) = nullptr;
  int (*last_error)() = nullptr;
  const char* (*text_of)(int error) = nullptr;
  int (*send)(void* socket, const void* bytes, std::size_t length, int flags) = nullptr;
  int (*message_init)(ZmqMessage* message) = nullptr;
  int (*message_receive)(ZmqMessage* message, void* socket, int flags) = nullptr;
  int (*message_close)(ZmqMessage* message) = nullptr;
  void* (*message_data)(ZmqMessage* message) = nullptr;
  std::size_t (*message_size)(const ZmqMessage* message) = nullptr;
};

// Errors say what is missing, and what to install.
Result<const ZmqLibrary*> zmq_library();

}  // namespace chasqui::publish
