#include "api/openai/openai_dialect.h"

#include "api/core/errors.h"

namespace chasqui {

const Dialect kOpenAi{"openai", "", &openai_error_body, &error_body};
const Dialect kLlamaServer{"llama-server", "", &error_body, &error_body};
const Dialect kChasqui{"chasqui", "", &error_body, &error_body};

}  // namespace chasqui
