#include "api/openai_dialect.h"

#include "api/errors.h"

namespace chasqui {

const Dialect kOpenAi{"openai", "", &error_body, &error_body};
const Dialect kLlamaServer{"llama-server", "", &error_body, &error_body};
const Dialect kChasqui{"chasqui", "", &error_body, &error_body};

}  // namespace chasqui
