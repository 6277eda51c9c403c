// What a batch's lines have come to, on disk: results behind one another while it runs, and at its end the two files
// that clients read, in OpenAI's format. Functions for the thread of the disk.
//
// exactly-once: each line of the input is in one of the two files, once, whatever has ended the process how often.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/batch/batch_job.h"
#include "jobs/job_folder.h"
#include "jobs/line_reader.h"
#include "jobs/record_journal.h"

namespace chasqui {

// A line with its answer, which is to be written.
struct AnsweredLine {
  std::uint32_t number = 0;
  std::string custom_id;
  std::string request_id;
  int status = 0;
  std::string body;     // JSON
  std::string receipt;  // of a result from the queue, which is acknowledged once this is on disk; empty: it ran here
};

// The bytes that were appended.
Result<std::uint64_t> append_results(JobFolder& folder, const std::string& job, std::uint64_t at,
                                     const std::vector<AnsweredLine>& lines);

struct FoundResults {
  std::vector<bool> done;  // by the number of the line
  BatchCounts counts{};    // without a total
  std::uint64_t bytes = 0;
};

// An end in the middle of a write has left nothing of that write. Makes the file where there is none.
Result<FoundResults> find_results(JobFolder& folder, const std::string& job);

struct WrittenFiles {
  std::uint64_t output_bytes = 0;  // 0: there is no such file
  std::uint64_t error_bytes = 0;
  std::size_t unanswered = 0;  // lines that are in the error file because the batch has expired or was cancelled
};

// Writes both files, but not what is said of them. `job`: its `end` says what lines without an answer are told.
Result<WrittenFiles> write_result_files(JobFolder& folder, const BatchJob& job);

// A line that is to be run.
struct WaitingLine {
  LinePlace place;
  std::size_t tries = 0;  // so far
  BatchLine line{};
  std::string fault{};  // the file has changed since it was checked; then there is no line
  // With --batch-queue:
  bool here = false;  // it runs here, and does not go into the queue
  bool sent = false;  // it has gone there
};

struct ReadAhead {
  std::vector<WaitingLine> lines;
  LinePlace next;  // behind them
  bool at_end = false;
};

// The next lines without an answer, up to a few at once.
Result<ReadAhead> read_ahead(const OpenFile& file, const std::string& endpoint, LinePlace from,
                             const std::vector<bool>& done);
// The line at `again`, once more.
Result<ReadAhead> read_again(const OpenFile& file, const std::string& endpoint, const WaitingLine& again);

}  // namespace chasqui
