// The routes of the admin listener (api/routes/route_table.h).
#include "api/admin/admin.h"
#include "api/admin/readiness.h"
#include "api/observe/debug_trace.h"
#include "api/observe/sequence_list.h"
#include "api/observe/step_feed.h"
#include "api/openai/openai_dialect.h"
#include "api/routes/route_table.h"

namespace chasqui {
namespace {

constexpr Access kOperators = Access::operators;

const Route kAdminRoutes[] = {
    {net::HttpMethod::get, "/health", &kChasqui, Access::open, &handle_health, {}},
    {net::HttpMethod::get, "/ready", &kChasqui, Access::open, &handle_ready, {}},
    {net::HttpMethod::get, "/version", &kChasqui, Access::open, &handle_version, {}},
    {net::HttpMethod::get, "/metrics", &kChasqui, Access::open, &handle_metrics, {}},
    {net::HttpMethod::get, "/debug/trace", &kChasqui, kOperators, &handle_debug_trace, {}},
    {net::HttpMethod::get, "/debug/sequences", &kChasqui, kOperators, &handle_sequences, {}},
    {net::HttpMethod::get, "/debug/steps", &kChasqui, kOperators, &handle_step_feed, {}},
    {net::HttpMethod::get, "/drain", &kChasqui, kOperators, &handle_show_drain, {}},
    {net::HttpMethod::post, "/drain", &kChasqui, kOperators, &handle_drain, {}},
    {net::HttpMethod::del, "/drain", &kChasqui, kOperators, &handle_reopen, {}},
};

}  // namespace

std::span<const Route> admin_routes() { return kAdminRoutes; }

}  // namespace chasqui
