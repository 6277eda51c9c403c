// Results of batches on disk: what is found after any end of the process.
#include "jobs/record_journal.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

class RecordJournalTest : public testing::Test {
 protected:
  RecordJournalTest() {
    std::string pattern = testing::TempDir() + "jobs-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
    folder_ = *JobFolder::open(path_);
    EXPECT_TRUE(folder_->put("journal", ""));
  }
  ~RecordJournalTest() override { std::filesystem::remove_all(path_); }

  struct Found {
    std::vector<JobRecord> records;
    std::uint64_t end = 0;
  };
  Found read() const {
    const auto file = folder_->open_file("journal");
    EXPECT_TRUE(file);
    RecordReader reader(*file);
    Found out;
    for (;;) {
      auto record = reader.next();
      EXPECT_TRUE(record);
      if (!*record) break;
      out.records.push_back(std::move(**record));
    }
    out.end = reader.end();
    return out;
  }

  std::string path_;
  std::shared_ptr<JobFolder> folder_;
};

TEST_F(RecordJournalTest, RecordsComeBackInTheirOrder) {
  std::string bytes;
  append_record(bytes, 7, RecordKind::answered, "seven");
  append_record(bytes, 3, RecordKind::failed, std::string(300'000, 'x'));
  append_record(bytes, 9, RecordKind::answered, "");
  ASSERT_TRUE(folder_->append("journal", 0, bytes));
  const Found found = read();
  ASSERT_EQ(found.records.size(), 3U);
  EXPECT_EQ(found.records[0].line, 7U);
  EXPECT_EQ(found.records[0].text, "seven");
  EXPECT_EQ(found.records[1].kind, RecordKind::failed);
  EXPECT_EQ(found.records[1].text.size(), 300'000U);
  EXPECT_EQ(found.records[2].line, 9U);
  EXPECT_EQ(found.end, bytes.size());
}

TEST_F(RecordJournalTest, ARecordThatWasCutAnywhereIsNotReadAndTheNextTakesItsPlace) {
  std::string first;
  append_record(first, 1, RecordKind::answered, "one");
  std::string second;
  append_record(second, 2, RecordKind::answered, "two");
  for (std::size_t cut = 0; cut < second.size(); ++cut) {
    ASSERT_TRUE(folder_->append("journal", 0, first + second.substr(0, cut)));
    const Found found = read();
    ASSERT_EQ(found.records.size(), 1U) << cut;
    ASSERT_EQ(found.end, first.size()) << cut;
  }
  std::string third;
  append_record(third, 3, RecordKind::failed, "three");
  ASSERT_TRUE(folder_->append("journal", first.size(), third));
  const Found found = read();
  ASSERT_EQ(found.records.size(), 2U);
  EXPECT_EQ(found.records[1].text, "three");
}

TEST_F(RecordJournalTest, ARecordWithAChangedByteIsNotRead) {
  std::string bytes;
  append_record(bytes, 1, RecordKind::answered, "some text");
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    ASSERT_TRUE(folder_->append("journal", 0, changed));
    EXPECT_TRUE(read().records.empty()) << at;
  }
}

TEST_F(RecordJournalTest, AWriterThatDidNotFinishLeavesNothing) {
  {
    FileWriter writer(*folder_, "output");
    ASSERT_TRUE(writer.add(std::string(1 << 20, 'a')));
  }
  EXPECT_EQ(folder_->names(), std::vector<std::string>{"journal"});
  FileWriter writer(*folder_, "output");
  ASSERT_TRUE(writer.add("a\n"));
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(*folder_->read("output", 10), "a\n");
}

TEST_F(RecordJournalTest, TheFolderIsOneServersAlone) {
  const auto again = JobFolder::open(path_);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::conflict);
  EXPECT_EQ(again.error().field, "--batch-dir");
}

}  // namespace
}  // namespace chasqui
