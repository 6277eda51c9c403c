#include "app/decoder_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/decoder_child.h"

namespace chasqui {
namespace {

bool is_to_be_tried_again() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// All that it gets of the environment: no keys.
std::vector<std::string> decoder_environment() {
  std::vector<std::string> out{"GGML_NO_BACKTRACE=1"};
  for (const char* const name : {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* const value = std::getenv(name)) out.push_back(std::string(name) + '=' + value);
  }
  return out;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

pid_t spawn_media_decoder(int socket) {
  std::vector<std::string> words{"chasqui", kDecoderWord};
  std::vector<std::string> variables = decoder_environment();
  const std::vector<char*> arguments = pointers_to(words);
  const std::vector<char*> environment = pointers_to(variables);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&how);
  ::posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  sigset_t none;
  sigset_t handled;
  sigemptyset(&none);
  sigemptyset(&handled);
  sigaddset(&handled, SIGPIPE);
  ::posix_spawnattr_setsigmask(&how, &none);
  ::posix_spawnattr_setsigdefault(&how, &handled);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t id = 0;
  if (::posix_spawn(&id, "/proc/self/exe", &files, &how, arguments.data(), environment.data()) != 0) id = 0;
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&how);
  return id;
}

std::unique_ptr<DecoderProcess> DecoderProcess::start(const SpawnDecoder& spawn, Duration longest) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
  const pid_t id = spawn(ends[1]);
  ::close(ends[1]);
  if (id <= 0) {
    ::close(ends[0]);
    return nullptr;
  }
  std::unique_ptr<DecoderProcess> process(new DecoderProcess(id, ends[0], longest));
  DecodeAnswer greeting;
  const Outcome greeted = process->receive(&greeting, sizeof greeting, process->clock_.now() + longest);
  if (greeted != Outcome::answered || !is_greeting(greeting)) return nullptr;
  process->filtered_ = greeting.width != 0;
  return process;
}

DecoderProcess::~DecoderProcess() {
  end();
  ::close(socket_);
}

DecoderProcess::Outcome DecoderProcess::decode(const DecodeOrder& order, std::string_view file, const Place& place) {
  const TimePoint until = clock_.now() + longest_;
  if (const Outcome sent = send(&order, sizeof order, until); sent != Outcome::answered) return sent;
  if (const Outcome sent = send(file.data(), file.size(), until); sent != Outcome::answered) return sent;
  DecodeAnswer answer;
  if (const Outcome got = receive(&answer, sizeof answer, until); got != Outcome::answered) return got;
  if (!can_answer(answer, order)) return Outcome::impossible;
  const std::span<std::byte> where = place(answer);
  CHECK(where.size() == answer.bytes);
  return receive(where.data(), where.size(), until);
}

bool DecoderProcess::waits() const {
  pollfd door{socket_, POLLIN, 0};
  return id_ > 0 && ::poll(&door, 1, 0) == 0;
}

std::string DecoderProcess::end() {
  if (id_ <= 0) return "it has ended";
  // One that has ended by itself keeps its status until it is asked for.
  ::kill(id_, SIGKILL);
  int status = 0;
  pid_t ended = 0;
  do ended = ::waitpid(id_, &status, 0);
  while (ended < 0 && errno == EINTR);
  id_ = 0;
  if (ended < 0) return "it has ended";
  if (WIFSIGNALED(status)) return std::string("signal ") + ::strsignal(WTERMSIG(status));
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

// Its time counts while it takes its order, too: one that reads nothing hangs.
DecoderProcess::Outcome DecoderProcess::wait_until(short event, TimePoint until) const {
  const auto left = std::chrono::ceil<milliseconds>(until - clock_.now()).count();
  if (left <= 0) return Outcome::late;
  pollfd door{socket_, event, 0};
  if (::poll(&door, 1, static_cast<int>(left)) < 0 && errno != EINTR) return Outcome::ended;
  return Outcome::answered;
}

DecoderProcess::Outcome DecoderProcess::send(const void* from, std::size_t bytes, TimePoint until) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t put = ::send(socket_, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put > 0) {
      at += put;
      bytes -= static_cast<std::size_t>(put);
    } else if (put < 0 && is_to_be_tried_again()) {
      if (const Outcome waited = wait_until(POLLOUT, until); waited != Outcome::answered) return waited;
    } else {
      return Outcome::ended;
    }
  }
  return Outcome::answered;
}

DecoderProcess::Outcome DecoderProcess::receive(void* to, std::size_t bytes, TimePoint until) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket_, at, bytes, MSG_DONTWAIT);
    if (got > 0) {
      at += got;
      bytes -= static_cast<std::size_t>(got);
    } else if (got < 0 && is_to_be_tried_again()) {
      if (const Outcome waited = wait_until(POLLIN, until); waited != Outcome::answered) return waited;
    } else {
      return Outcome::ended;
    }
  }
  return Outcome::answered;
}

}  // namespace chasqui
