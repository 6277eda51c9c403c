#include "app/decoder_child.h"

#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"

namespace chasqui {
namespace {

// How a process ends that is confined and does this; it ends by itself with 3.
int ending_of(const std::function<void()>& does) {
  const pid_t id = ::fork();
  if (id == 0) {
    const bool filtered = confine_decoder();
    if (!filtered) ::_exit(4);
    does();
    ::_exit(3);
  }
  int status = 0;
  CHECK(::waitpid(id, &status, 0) == id);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

class ConfinedDecoder : public testing::Test {
 protected:
  void SetUp() override {
    if (ending_of([] {}) == 4) GTEST_SKIP() << "no filter of system calls here";
  }
};

TEST_F(ConfinedDecoder, MayAllocateAndAnswer) {
  const auto allocates = [] {
    for (std::size_t bytes = 1; bytes < 1u << 28; bytes *= 2) {
      void* const memory = std::malloc(bytes);
      if (memory == nullptr) ::_exit(5);
      void* const larger = std::realloc(memory, 2 * bytes);
      if (larger == nullptr) ::_exit(6);
      std::free(larger);
    }
    ::alarm(60);
    if (::write(STDOUT_FILENO, "", 0) != 0) ::_exit(7);
    ::alarm(0);
  };
  EXPECT_EQ(ending_of(allocates), 3);
}

TEST_F(ConfinedDecoder, EndsAtWhatDecodingDoesNotNeed) {
  EXPECT_EQ(ending_of([] { ::open("/etc/passwd", O_RDONLY); }), -SIGSYS);
  EXPECT_EQ(ending_of([] { ::fork(); }), -SIGSYS);
  EXPECT_EQ(ending_of([] { ::kill(::getppid(), 0); }), -SIGSYS);
  EXPECT_EQ(ending_of([] { ::execl("/bin/true", "true", nullptr); }), -SIGSYS);
  EXPECT_EQ(ending_of([] { ::unlink("/nowhere"); }), -SIGSYS);
  EXPECT_EQ(ending_of([] {
              rlimit all{RLIM_INFINITY, RLIM_INFINITY};
              ::setrlimit(RLIMIT_AS, &all);
            }),
            -SIGSYS);
  EXPECT_EQ(
      ending_of([] { ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }),
      -SIGSYS);
  EXPECT_EQ(ending_of([] { std::abort(); }), -SIGSYS) << "it has no call for that either";
}

TEST_F(ConfinedDecoder, HasSoMuchMemory) {
  const auto maps = [](std::size_t bytes) {
    return ending_of([bytes] {
      const void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ::_exit(at == MAP_FAILED ? 1 : 0);
    });
  };
  EXPECT_EQ(maps(kSizeLimit<"media_decoder_bytes"> + (1 << 20)), 1);
  EXPECT_EQ(maps(kSizeLimit<"media_decoder_bytes"> / 2), 0);
}

TEST(MediaDecoderWord, IsTheWholeCommandLine) {
  std::string program = "chasqui", word = kDecoderWord, more = "--help";
  char* line[] = {program.data(), word.data(), more.data(), nullptr};
  EXPECT_TRUE(is_media_decoder(2, line));
  EXPECT_FALSE(is_media_decoder(3, line));
  EXPECT_FALSE(is_media_decoder(1, line));
  line[1] = more.data();
  EXPECT_FALSE(is_media_decoder(2, line));
}

}  // namespace
}  // namespace chasqui
