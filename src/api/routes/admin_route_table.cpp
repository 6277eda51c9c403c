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

constexpr net::HttpMethod kGet = net::HttpMethod::get;
constexpr net::HttpMethod kPost = net::HttpMethod::post;
constexpr net::HttpMethod kDelete = net::HttpMethod::del;
constexpr Access kOpen = Access::open;
constexpr Access kOperators = Access::operators;

const Route kAdminRoutes[] = {
    {kGet, "/health", &kChasqui, kOpen, &handle_health, {}},
    {kGet, "/ready", &kChasqui, kOpen, &handle_ready, {}},
    {kGet, "/version", &kChasqui, kOpen, &handle_version, {}},
    {kGet, "/metrics", &kChasqui, kOpen, &handle_metrics, {}},
    {kGet, "/debug/trace", &kChasqui, kOperators, &handle_debug_trace, {}},
    {kGet, "/debug/sequences", &kChasqui, kOperators, &handle_sequences, {}},
    {kGet, "/debug/steps", &kChasqui, kOperators, &handle_step_feed, {}},
    {kGet, "/drain", &kChasqui, kOperators, &handle_show_drain, {}},
    {kPost, "/drain", &kChasqui, kOperators, &handle_drain, {}},
    {kDelete, "/drain", &kChasqui, kOperators, &handle_reopen, {}},
};

}  // namespace

std::span<const Route> admin_routes() { return kAdminRoutes; }

}  // namespace chasqui
