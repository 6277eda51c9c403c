// Thresholds that several rules of the scheduler share, because they answer the same question. A rule that has another
// reason for its number keeps it in its own file.
#pragma once

#include "base/clock.h"
#include "core/types.h"

namespace chasqui {

// Fewer tokens are computed again sooner than a copy of them pays: a template may put as many before an answer.
constexpr TokenCount kWorthACopy = 8;
// So many are worth a file, or that a request waits for another one that computes them: in less time than they take to
// compute, no other sequence gets a step.
constexpr TokenCount kWorthWaiting = 32;
// Rows of a batch that are enough for most kernels: what the first steps of an unknown model have, and what a prompt
// that is about to decode has left.
constexpr TokenCount kUsualRows = 64;
// The most rows that one pass computes; larger batches bring nothing.
constexpr TokenCount kMicroBatch = 512;
// Steps, answers or tokens that tell something: what fewer of them took is chance.
constexpr int kTelling = 64;
// Another number of rows must bring so many times the tokens a second: what is predicted is never quite right, and of
// many predictions the best is mostly one that is too good. A batch whose rows are dearer than the cheapest by less is
// large enough.
constexpr double kBetter = 1.03;
// What was never seen is expected to be so much: of a chance, or of what is known of the next smaller size.
constexpr double kUnknown = 0.5;
// What may be hoped of a size that was not seen for long, and of a draft model before any of its tokens was checked.
constexpr double kHope = 0.7;
// What is known loses so much of its weight with each newer thing: it is forgotten within about twenty.
constexpr double kFading = 0.95;
// Passes over the weights in which a stream may wait for its next token, in which each prompt may make it wait, and
// which a chunk takes at least: rows of a chunk of four cost 1.3 times the least.
constexpr int kPasses = 4;
// One part in so many is little: of the rows of a chunk, of the time that reading takes, of a step that is drafted for.
constexpr int kLittle = 8;
// One part in so many may be lost: of the rows of a pass, of the time within which a first token is due, of a turn.
constexpr int kQuarter = 4;
// Most kernels for quantized weights compute so many rows at once, and what is left over one by one.
constexpr TokenCount kKernelRows = 4;
// A forecast is made anew when it is so old, or older where more wait: it takes a small part of a percent of the time.
constexpr Duration kForecastEvery = milliseconds(20);
// Streams, and arrivals, wait so long for copies without noticing.
constexpr Duration kShortWait = milliseconds(50);

}  // namespace chasqui
