#include "app/record_writer.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "record/replay.h"

namespace chasqui {
namespace {

namespace fs = std::filesystem;

class RecordWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("chasqui-record-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name = "file") const { return (folder_ / name).string(); }
  static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static RecordedHead head() {
    RecordedHead head;
    head.model = "m";
    head.config.kv = {2, 128, 64, false};
    head.config.rows_max = 16;
    return head;
  }
  static std::unique_ptr<RecordWriter> open(const std::string& path, const RecordLimits& limits = {}) {
    auto writer = RecordWriter::open(path, limits);
    EXPECT_TRUE(writer) << writer.error().message;
    return writer ? std::move(*writer) : nullptr;
  }
  // Calls that take some bytes each.
  static void talk(SchedulerTap& tap, int calls) {
    for (int i = 0; i < calls; ++i) {
      tap.all_cancelled(TimePoint{} + seconds(i));
      tap.planned(TimePoint{} + seconds(i), Batch{});
    }
  }

  fs::path folder_;
};

TEST_F(RecordWriterTest, WritesAStreamForEachWorker) {
  {
    const auto writer = open(path());
    const auto first = writer->tap(head());
    const auto second = writer->tap(head());
    talk(*first, 3);
    talk(*second, 5);
    EXPECT_EQ(writer->metrics().recording.value(), 1);
  }
  const Result<RecordFile> file = RecordFile::parse(bytes_of(path()));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->streams().size(), 2u);
  EXPECT_EQ(file->cut(), 0u);
  EXPECT_EQ(replay(file->streams()[0]).plans, 3u);
  EXPECT_EQ(replay(file->streams()[1]).plans, 5u);
}

TEST_F(RecordWriterTest, KeepsTheRecordingBefore) {
  open(path())->tap(head());
  const std::string before = bytes_of(path());
  open(path()).reset();
  EXPECT_EQ(bytes_of(path() + ".old"), before);
  EXPECT_EQ(bytes_of(path()), kRecordMagic);
  open(path())->tap(head());
  EXPECT_EQ(bytes_of(path() + ".old"), before) << "a start that failed has recorded nothing";
  EXPECT_EQ(bytes_of(path()).size(), before.size());
  EXPECT_EQ(fs::status(path()).permissions() & fs::perms::all, fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(RecordWriterTest, NamesWhatIsWrongWithAPath) {
  std::ofstream(path("text")) << "no recording";
  const auto why = [](const std::string& path) {
    const auto good = RecordWriter::check(path);
    return good ? std::string() : good.error().message;
  };
  EXPECT_EQ(why(path()), "");
  EXPECT_FALSE(fs::exists(path())) << "a check makes nothing";
  EXPECT_NE(why(path("text")).find("is no recording"), std::string::npos);
  EXPECT_NE(why(path("none/file")).find("there is no folder"), std::string::npos);
  EXPECT_NE(why(folder_.string()).find("no file"), std::string::npos);
  EXPECT_NE(why(folder_.string()).find("--record"), std::string::npos);
  EXPECT_FALSE(RecordWriter::open(path("text")));
}

TEST_F(RecordWriterTest, EndsWhereTheFileIsAsLongAsItMayBe) {
  const auto writer = open(path(), {.file_bytes = 2000});
  auto tap = writer->tap(head());
  talk(*tap, 1000);
  tap.reset();
  while (writer->metrics().recording.value() != 0) std::this_thread::yield();
  EXPECT_FALSE(writer->take({0, "x"}));
  const auto again = RecordFile::parse(bytes_of(path()));
  ASSERT_TRUE(again) << again.error().message;
}

TEST_F(RecordWriterTest, EndsWhereTooMuchWaits) {
  {
    const auto writer = open(path(), {.waiting_bytes = 4000});
    const auto tap = writer->tap(head());
    talk(*tap, 3);
    EXPECT_FALSE(writer->take({0, std::string(5000, 'x')}));
    talk(*tap, 3);
    EXPECT_FALSE(writer->take({0, "x"})) << "it has ended";
  }
  const Result<RecordFile> file = RecordFile::parse(bytes_of(path()));
  ASSERT_TRUE(file) << file.error().message;
  const ReplayReport report = replay(file->streams().front());
  EXPECT_TRUE(report.agrees()) << report.difference.value_or(report.fault.value_or(""));
  EXPECT_EQ(report.plans, 3u);
  EXPECT_NE(report.end.find("waited"), std::string::npos) << report.end;
}

}  // namespace
}  // namespace chasqui
