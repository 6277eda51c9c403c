// Draft heads predict the next tokens out of the model's own hidden states: heads that were trained with it, in its
// file (MTP) or in one of their own (EAGLE-3). They learn of the batches that the model computes, so they have nothing
// to read. Owned by the Model, whose slots they share; worker thread only.
#pragma once

#include "core/batch.h"

namespace chasqui {

class Heads {
 public:
  virtual ~Heads() = default;

  // Of each sequence it makes so many draft tokens, however few are wanted.
  virtual TokenCount draft_tokens() const = 0;

  // Of the batch that the model has computed just now, without an error. Of a slot whose batch before was not learned
  // of it knows nothing but this one.
  virtual void learn(const Batch& batch) = 0;

  // Writes its draft tokens into the rows of the batch that are for them. Where it knows nothing of what a slot holds,
  // those rows stay as they are, and are wrong. False: it failed, and all of them are.
  virtual bool draft(Batch& batch) = 0;
};

}  // namespace chasqui
