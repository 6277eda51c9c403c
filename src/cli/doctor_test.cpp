#include "cli/doctor.h"

#include <filesystem>
#include <fstream>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

namespace chasqui::cli {
namespace {

using Level = Finding::Level;
namespace fs = std::filesystem;

Machine large_machine() {
  Machine machine;
  machine.memory_bytes = machine.available_bytes = std::uint64_t{64} << 30;
  machine.cores = 16;
  return machine;
}

Finding found(const Findings& findings, const std::string& check) {
  for (const Finding& finding : findings) {
    if (finding.check == check) return finding;
  }
  return {Level::bad, "missing", check, ""};
}

TEST(Doctor, ALargeMachineIsWell) {
  DoctorQuestion question;
  question.needed_bytes = std::uint64_t{4} << 30;
  const Findings findings = check_machine(question, large_machine());
  EXPECT_TRUE(all_well(findings));
  for (const Finding& finding : findings) EXPECT_EQ(finding.advice, "") << finding.check;
}

TEST(Doctor, WhatDoesNotFitIsBadWithAdvice) {
  DoctorQuestion question;
  question.needed_bytes = std::uint64_t{4} << 30;
  Machine machine = large_machine();
  machine.group_limit_bytes = std::uint64_t{2} << 30;
  const Findings findings = check_machine(question, machine);
  EXPECT_FALSE(all_well(findings));
  EXPECT_EQ(found(findings, "memory").level, Level::bad);
  EXPECT_NE(found(findings, "memory").advice, "");
}

TEST(Doctor, MemoryOfOtherMachinesCounts) {
  DoctorQuestion question;
  question.needed_bytes = std::uint64_t{80} << 30;
  EXPECT_EQ(found(check_machine(question, large_machine()), "memory").level, Level::bad);
  question.elsewhere_bytes = std::uint64_t{20} << 30;
  const Finding memory = found(check_machine(question, large_machine()), "memory");
  EXPECT_EQ(memory.level, Level::good);
  EXPECT_NE(memory.found.find("; 20 GiB free on RPC servers"), std::string::npos) << memory.found;
}

TEST(Doctor, AQuotaOfCoresIsSaidWithTheFlagThatKeepsWithinIt) {
  Machine machine = large_machine();
  machine.group_cores = 2.5;
  DoctorQuestion question;
  EXPECT_EQ(found(check_machine(question, machine), "cores").level, Level::good) << "as many as it allows";
  question.threads = 3;
  const Finding cores = found(check_machine(question, machine), "cores");
  EXPECT_EQ(cores.level, Level::warning);
  EXPECT_NE(cores.advice.find("--threads 2"), std::string::npos) << cores.advice;
  question.threads = 2;
  EXPECT_EQ(found(check_machine(question, machine), "cores").level, Level::good);
}

TEST(Doctor, LimitsOfFilesAndLockedMemory) {
  Machine machine = large_machine();
  machine.open_files = 256;
  machine.locked_bytes = 65536;
  DoctorQuestion question;
  question.needed_bytes = 1 << 20;
  EXPECT_EQ(found(check_machine(question, machine), "files").level, Level::warning);
  EXPECT_EQ(found(check_machine(question, machine), "memlock").level, Level::good) << "no flag asks to lock";
  question.mlock = true;
  EXPECT_EQ(found(check_machine(question, machine), "memlock").level, Level::bad);
}

TEST(Doctor, ABinaryForAnotherCpuAndAModelThatCannotBeReadAreBad) {
  DoctorQuestion question;
  question.runtime_error = "compiled for AVX512";
  EXPECT_EQ(found(check_machine(question, large_machine()), "cpu").level, Level::bad);
  question.model_error = "no such file";
  EXPECT_EQ(found(check_model(question), "model").level, Level::bad);
  question.model_error.clear();
  question.has_template = false;
  EXPECT_EQ(found(check_model(question), "template").level, Level::warning);
}

TEST(Doctor, APortThatIsTakenIsBad) {
  boost::asio::io_context loop(1);
  boost::asio::ip::tcp::acceptor taken(loop, {boost::asio::ip::make_address("127.0.0.1"), 0});
  const std::uint16_t port = taken.local_endpoint().port();
  EXPECT_EQ(check_port("127.0.0.1", port).level, Level::bad);
  EXPECT_EQ(check_port("127.0.0.1", 0).level, Level::good);
  EXPECT_EQ(check_port("no address", port).level, Level::bad);
}

TEST(Doctor, FoldersFilesAndSocketsAreLookedAt) {
  const fs::path folder = fs::temp_directory_path() / ("chasqui-doctor-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string file = (folder / "file").string();
  std::ofstream(file) << "x";
  fs::permissions(folder, fs::perms(0755));
  EXPECT_EQ(check_folder("--session-dir", folder.string()).level, Level::good);
  EXPECT_EQ(check_private_folder("--batch-dir", folder.string()).level, Level::bad) << "others may look into it";
  fs::permissions(folder, fs::perms(0700));
  EXPECT_EQ(check_private_folder("--batch-dir", folder.string()).level, Level::good);
  EXPECT_EQ(check_private_folder("--batch-dir", (folder / "new").string()).level, Level::good);
  const int lock = ::open((folder / "lock").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  EXPECT_EQ(check_private_folder("--batch-dir", folder.string()).level, Level::warning) << "another process uses it";
  ::close(lock);
  EXPECT_EQ(check_folder("--session-dir", (folder / "new" / "deep").string()).level, Level::good);
  EXPECT_EQ(check_folder("--session-dir", file).level, Level::bad);
  EXPECT_EQ(check_folder("--session-dir", file + "/inside").level, Level::bad);
  EXPECT_EQ(check_socket_path("--socket", (folder / "s").string()).level, Level::good);
  EXPECT_EQ(check_socket_path("--socket", file).level, Level::bad);
  EXPECT_EQ(check_socket_path("--socket", std::string(200, 'a')).level, Level::bad);
  fs::permissions(file, fs::perms(0644));
  EXPECT_EQ(check_readable("--api-key-file", file, true).level, Level::warning);
  EXPECT_EQ(check_readable("--chat-template-file", file, false).level, Level::good);
  EXPECT_EQ(check_readable("--chat-template-file", folder.string() + "/none", false).level, Level::bad);
  fs::remove_all(folder);
}

TEST(Doctor, JsonHasEveryCheck) {
  const Findings findings{{Level::good, "a", "\"fine\"", ""}, {Level::bad, "b", "not", "do"}};
  EXPECT_EQ(findings_json(findings),
            "{\"ok\":false,\"checks\":[{\"check\":\"a\",\"level\":\"ok\",\"found\":\"\\\"fine\\\"\"},"
            "{\"check\":\"b\",\"level\":\"bad\",\"found\":\"not\",\"advice\":\"do\"}]}\n");
}

}  // namespace
}  // namespace chasqui::cli
