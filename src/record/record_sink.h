// Where recorders bring what they have written. Implemented by the writer of the file (app/record_writer) and by tests.
#pragma once

#include <string>

#include "record/record_format.h"

namespace chasqui {

class RecordSink {
 public:
  virtual ~RecordSink() = default;

  // Any thread; never waits. False: the recording has ended, and this is not in it.
  virtual bool take(RecordPiece&& piece) = 0;
  // Any thread: room of a piece that was written, or an empty text.
  virtual std::string room() = 0;
};

}  // namespace chasqui
