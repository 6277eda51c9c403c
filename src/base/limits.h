// The one table of limits: what each is by default, what happens where it is reached, what counts that, what sets it.
// Code takes its defaults from here by name, and a name that is not here does not compile; docs/limits.md, `chasqui
// config --limits` and /props are made of it. Constant; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "base/clock.h"

namespace chasqui {

enum class LimitUnit { count, bytes, time };

struct Limit {
  std::string_view name;  // of times ends in _seconds
  LimitUnit unit = LimitUnit::count;
  std::int64_t standard = 0;      // of times in milliseconds
  std::string_view of;            // what is limited
  std::string_view reached;       // what happens then
  std::string_view metric = {};   // that shows it; empty: none
  std::string_view flag = {};     // that sets it; empty: none
  std::string_view depends = {};  // what the default is, where it depends on the machine or the model
};

namespace limits_detail {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;
constexpr std::int64_t kSecond = 1000;

// What kind of client or caller they are about stands above them.
inline constexpr Limit kTable[] = {
    // HTTP
    {"request_line_bytes", LimitUnit::bytes, 8 * kKiB, "the first line of a request", "414",
     "chasqui_http_requests_refused_total"},
    {"header_bytes", LimitUnit::bytes, 16 * kKiB, "all headers of a request", "431",
     "chasqui_http_requests_refused_total"},
    {"header_count", LimitUnit::count, 100, "headers of a request", "431", "chasqui_http_requests_refused_total"},
    {"request_id_bytes", LimitUnit::bytes, 128, "X-Request-Id or X-Session-Id of a client",
     "another X-Request-Id is made, the X-Session-Id is not echoed"},
    {"fairness_id_bytes", LimitUnit::bytes, 256, "x-llm-d-inference-fairness-id of a client", "400"},
    {"body_bytes", LimitUnit::bytes, 32 * kMiB, "the body of a request",
     "413, before it is read where its length is announced", "chasqui_http_requests_refused_total"},
    {"bodies_bytes", LimitUnit::bytes, 512 * kMiB, "all bodies in memory",
     "503 for the one on its way that has held most for longest, for 1 s at least, else for the newest",
     "chasqui_http_body_bytes"},
    {"answers_bytes", LimitUnit::bytes, 256 * kMiB,
     "whole answers that clients have not read, a fourth of it of one tenant where there are others",
     "503 for answers over 64 KiB", "chasqui_http_answer_bytes"},
    {"compressed_bytes", LimitUnit::bytes, 8 * kKiB,
     "an answer that is compressed for clients that ask for it, at least", "smaller ones are sent as they are"},
    {"compressions", LimitUnit::count, 32, "answers that are being compressed at once",
     "further ones are sent as they are", "chasqui_http_compressed_total"},
    {"error_bytes", LimitUnit::bytes, 2048, "the message of an error", "it is cut"},
    {"pipelined_bytes", LimitUnit::bytes, 64 * kKiB, "what is read ahead of a running request",
     "the rest waits in the kernel"},
    {"kernel_unsent_bytes", LimitUnit::bytes, 128 * kKiB, "answers that the kernel holds for one client",
     "the rest waits for the client"},
    {"header_seconds", LimitUnit::time, 10 * kSecond, "from the first byte of a request to the end of its headers",
     "408, closed", "chasqui_http_timeouts_total"},
    {"body_seconds", LimitUnit::time, 30 * kSecond, "from the end of the headers to the end of the body", "408, closed",
     "chasqui_http_timeouts_total"},
    {"keep_alive_seconds", LimitUnit::time, 60 * kSecond, "silence between requests", "closed",
     "chasqui_http_timeouts_total"},
    {"write_seconds", LimitUnit::time, 30 * kSecond, "a client takes no byte of its answer",
     "closed, its request cancelled", "chasqui_http_timeouts_total", "--timeout"},
    {"linger_seconds", LimitUnit::time, 2 * kSecond, "for a refused client to read why", "closed"},
    {"connections", LimitUnit::count, 12'000, "connections at once", "accepting pauses",
     "chasqui_http_accept_pauses_total", "",
     "12000, less where few descriptors may be open: half of them, or all but 4096"},
    {"admin_connections", LimitUnit::count, 256, "connections of the admin listener at once", "accepting pauses",
     "chasqui_http_accept_pauses_total"},
    {"agent_connections", LimitUnit::count, 64, "agent checks that have their answer and are still open",
     "further ones are closed at once"},
    {"agent_seconds", LimitUnit::time, 1 * kSecond, "for an agent check to close after its answer", "closed"},
    {"tls_handshake_seconds", LimitUnit::time, 10 * kSecond, "from a connection to the end of its TLS handshake",
     "closed", "chasqui_http_timeouts_total"},
    {"tls_handshakes", LimitUnit::count, 1024, "TLS handshakes under way", "the oldest is closed",
     "chasqui_tls_handshakes_failed_total"},
    {"tls_messages", LimitUnit::count, 32, "messages of TLS itself, such as new keys, between two bytes of HTTP",
     "closed"},
    // The local socket (docs/protocol.md)
    {"frame_bytes", LimitUnit::bytes, 8 * kMiB, "one frame of the local socket", "an error event, closed"},
    {"frame_line_bytes", LimitUnit::bytes, 64 * kKiB, "one line of the local socket", "an error event, closed"},
    {"frames_incomplete_bytes", LimitUnit::bytes, 256 * kMiB,
     "frames on their way, or that wait to be read, of all connections",
     "their connections wait; after 1 s an error event for the frame that has held most for longest, closed; an error "
     "event for one that has come whole",
     "chasqui_socket_incomplete_bytes"},
    {"frame_unsent_bytes", LimitUnit::bytes, 256 * kKiB, "unread output of one connection to the local socket",
     "closed, its requests cancelled"},
    {"frame_connections", LimitUnit::count, 1024, "connections to the local socket at once", "accepting pauses"},
    {"frame_seconds", LimitUnit::time, 30 * kSecond, "from the first byte of a frame to its last",
     "an error event, closed"},
    {"frame_write_seconds", LimitUnit::time, 30 * kSecond, "a client of the local socket takes no byte",
     "closed, its requests cancelled"},
    {"frame_requests", LimitUnit::count, 256, "open requests of one connection to the local socket", "an error event"},
    {"frame_id_bytes", LimitUnit::bytes, 128, "the id of a request in a frame", "an error event"},
    {"frame_metadata_bytes", LimitUnit::bytes, 4096, "the metadata of a request in a frame", "an error event"},
    // Answers
    {"unread_bytes", LimitUnit::bytes, 256 * kKiB, "events that wait for a client that does not read",
     "its request is cancelled", "chasqui_slow_clients_total"},
    {"silent_seconds", LimitUnit::time, 5 * kSecond, "a stream without a byte", "a comment is sent", "",
     "--sse-ping-interval"},
    {"resume_streams", LimitUnit::count, 64, "streams that can be resumed", "503", "chasqui_kept_streams",
     "--resume-streams"},
    {"resume_tenant_streams", LimitUnit::count, 16, "streams of one tenant with a key that can be resumed", "429",
     "chasqui_kept_streams", "--resume-tenant-streams"},
    {"resume_bytes", LimitUnit::bytes, 1 * kMiB, "bytes of a resumable stream that can be read again",
     "409 for older ones; a reader that is slower is cut off", "chasqui_kept_streams_behind_total", "--resume-bytes"},
    {"resume_forgotten_bytes", LimitUnit::bytes, 64 * kKiB,
     "the end of a resumable stream that is stopped, replaced or over, for those who still read it",
     "a reader that is further behind is cut off", "chasqui_kept_streams_behind_total"},
    {"resume_ttl_seconds", LimitUnit::time, 60 * kSecond, "a resumable stream without a reader", "it ends",
     "chasqui_kept_streams_abandoned_total", "--resume-ttl"},
    {"resume_readers", LimitUnit::count, 16, "connections that read one resumable stream", "429"},
    {"resume_id_bytes", LimitUnit::bytes, 256, "the name of a resumable stream", "400"},
    {"resume_lookup", LimitUnit::count, 1000, "names in one lookup of resumable streams", "400"},
    // Fields of requests
    {"model_name_bytes", LimitUnit::bytes, 1 * kKiB, "the name of a model that a request asks for", "404"},
    {"named_id_bytes", LimitUnit::bytes, 256, "the id of a response, an item, a session or a file that a body names",
     "as for an id that is not known"},
    {"json_depth", LimitUnit::count, 64, "nesting of a body", "400"},
    {"json_nodes", LimitUnit::count, 1'000'000, "values and names in a body, and in texts of its tool calls", "400"},
    {"messages", LimitUnit::count, 4096, "messages, or items, of a conversation", "400"},
    {"media_files", LimitUnit::count, 64, "pictures and sounds of a request", "400"},
    {"media_bytes", LimitUnit::bytes, 20 * kMiB, "one picture or sound, as a file", "400"},
    {"media_type_bytes", LimitUnit::bytes, 256, "what stands before the data in a data URL", "400"},
    {"media_link_bytes", LimitUnit::bytes, 8192, "the address of a picture", "400"},
    {"media_link_seconds", LimitUnit::time, 10 * kSecond, "fetching one picture from its address", "400",
     "chasqui_media_links_failed_total"},
    {"media_links_seconds", LimitUnit::time, 20 * kSecond, "fetching all that a request names", "400",
     "chasqui_media_links_failed_total"},
    {"tool_calls", LimitUnit::count, 8192, "calls of tools, and their results, in a conversation", "400"},
    {"tools", LimitUnit::count, 256, "tools of a request", "400"},
    {"skipped_types", LimitUnit::count, 64, "types of tools that are skipped", "further ones are not logged"},
    {"tool_properties", LimitUnit::count, 2048, "properties in the parameters of all tools of a request", "400"},
    {"tool_parts", LimitUnit::count, 100'000,
     "JSON values in all tools of a request, once for each type that a schema lists", "400"},
    {"tool_bytes", LimitUnit::bytes, 4 * kMiB, "names and texts in all tools of a request", "400"},
    {"tool_path_bytes", LimitUnit::bytes, 2 * kMiB, "the paths to all objects in all tools of a request, added up",
     "400"},
    {"tool_references", LimitUnit::count, 1000, "$ref in all tools of a request", "400"},
    {"template_args", LimitUnit::count, 256, "members of chat_template_kwargs", "400"},
    {"reasoning_message_bytes", LimitUnit::bytes, 4 * kKiB, "reasoning_budget_message", "400"},
    {"template_arg_bytes", LimitUnit::bytes, 256 * kKiB, "chat_template_kwargs as JSON", "400"},
    {"template_seconds", LimitUnit::time, 2 * kSecond, "computing of the chat template for one request", "400"},
    {"template_pieces", LimitUnit::count, 250'000, "parts into which the chat template splits texts", "400"},
    {"answer_seconds", LimitUnit::time, kSecond / 4, "computing each time that an answer with tools is parsed",
     "the rest of it is content"},
    {"answer_steps", LimitUnit::count, 4'000'000, "steps of that; also of the last message, which begins an answer",
     "the rest of it is content; 400"},
    {"word_bytes", LimitUnit::bytes, 32 * kKiB, "a text without white space, or of it and punctuation alone",
     "tokenized in parts"},
    {"answers", LimitUnit::count, 16, "answers to one prompt (n)", "400"},
    {"requests", LimitUnit::count, 128, "prompts × answers of one body", "400"},
    {"top_logprobs", LimitUnit::count, 20, "likely tokens told with each token (top_logprobs)", "400"},
    {"prompt_chances", LimitUnit::count, 2'000'000, "likelihoods of prompts' tokens, with echo and logprobs", "400"},
    {"draft_tokens", LimitUnit::count, 16, "draft tokens of one request in one step", "400", {}, "--spec-draft-n-max"},
    {"chances", LimitUnit::count, 100, "likely tokens told with each token (n_probs)", "400"},
    {"stop", LimitUnit::count, 64, "stop strings", "400"},
    {"stop_bytes", LimitUnit::bytes, 2048, "one stop string", "400"},
    {"stops_bytes", LimitUnit::bytes, 16 * kKiB, "all stop strings", "400"},
    {"stop_tokens", LimitUnit::count, 64, "stop tokens", "400"},
    {"whole_answer_bytes", LimitUnit::bytes, 128 * kMiB, "an answer that does not stream, as JSON",
     "400 when its likely tokens are more"},
    {"logit_bias", LimitUnit::count, 1024, "tokens with a bias", "400"},
    {"logit_bias_bytes", LimitUnit::bytes, 1024, "the text of one token with a bias", "400"},
    {"response_fields", LimitUnit::count, 64, "response_fields", "400"},
    {"response_name_bytes", LimitUnit::bytes, 256, "one name in response_fields", "400"},
    {"response_field_bytes", LimitUnit::bytes, 16 * kKiB, "metadata, user and the like, which a response repeats",
     "400"},
    {"response_tool_bytes", LimitUnit::bytes, 1 * kMiB, "tools that a response repeats and the model is not shown",
     "400"},
    {"content_bytes", LimitUnit::bytes, 1 * kMiB, "content of /tokenize", "400"},
    {"infill_candidates", LimitUnit::count, 128, "likely tokens that the sampler infill compares",
     "it leaves the others out"},
    {"infill_files", LimitUnit::count, 256, "input_extra of /infill", "400"},
    {"infill_bytes", LimitUnit::bytes, 4 * kMiB, "texts of /infill", "400"},
    {"inputs", LimitUnit::count, 2048, "texts of one request to embed, or to rank", "400"},
    {"rank_bytes", LimitUnit::bytes, 16 * kMiB, "texts to rank, each with its query", "400"},
    {"vector_tokens", LimitUnit::count, 16'777'216, "tokens that wait to be embedded or ranked, of several requests",
     "503"},
    {"adapters", LimitUnit::count, 128, "LoRA adapters of a model, with those that still finish requests",
     "400; with more in --lora the server does not start", "chasqui_adapters"},
    {"adapter_name_bytes", LimitUnit::bytes, 128, "the name of an adapter that is loaded at run time", "400"},
    // Pictures and sounds
    {"picture_pixels", LimitUnit::count, 40'000'000, "pixels of a picture", "400, before it is decoded"},
    {"picture_side", LimitUnit::count, 16'384, "pixels of one side of a picture", "400, before it is decoded"},
    {"picture_scans", LimitUnit::count, 100, "scans of a JPEG", "400, before it is decoded"},
    {"decoded_media_bytes", LimitUnit::bytes, 384 * kMiB,
     "decoded pictures and sounds of a request: three bytes a pixel, four a sample", "400"},
    {"waiting_media_bytes", LimitUnit::bytes, 1024 * kMiB,
     "what projectors of a model will encode, of requests that wait or run; one request may have more", "503"},
    {"sound_seconds", LimitUnit::time, 600 * kSecond, "a sound", "400, before it is decoded"},
    {"media_decode_seconds", LimitUnit::time, 8 * kSecond, "decoding one picture or sound", "400; its process is ended",
     "chasqui_media_decoder_restarts_total"},
    {"media_decoder_bytes", LimitUnit::bytes, 1024 * kMiB, "what a process that decodes allocates", "400"},
    {"encoded_media_bytes", LimitUnit::bytes, 256 * kMiB, "what pictures and sounds of a model were encoded to",
     "the one that was used least recently is encoded again when it is needed", "chasqui_media_cache_bytes"},
    // Constraints
    {"grammar_bytes", LimitUnit::bytes, 64 * kKiB, "a grammar, or a schema", "400"},
    {"grammar_made_bytes", LimitUnit::bytes, 256 * kKiB, "the grammar that a schema becomes", "400"},
    {"grammar_nesting", LimitUnit::count, 100, "nesting of a grammar", "400"},
    {"grammar_rules", LimitUnit::count, 10'000, "rules of a grammar", "400"},
    {"grammar_ways", LimitUnit::count, 4096, "ways to the next character, from any place", "400"},
    {"grammar_cells", LimitUnit::count, 20'000, "entries of the stacks of all ways to the next character", "400"},
    {"grammar_made_rules", LimitUnit::count, 50'000, "rules of a grammar with its repetitions written out", "400"},
    {"grammar_elements", LimitUnit::count, 500'000, "characters of a grammar with its repetitions written out", "400"},
    {"grammar_automaton_steps", LimitUnit::count, 2'000'000, "steps of a grammar's automaton", "400"},
    {"grammar_compile_work", LimitUnit::count, 40'000'000, "steps looked at to compile a grammar", "400"},
    {"grammar_items", LimitUnit::count, 8192, "places of a grammar that an answer may be at, all at once",
     "the others are given up"},
    {"grammar_depth", LimitUnit::count, 4096, "rules of a grammar that an answer is inside of", "it cannot go deeper"},
    {"grammar_returns", LimitUnit::count, 64, "places that one place of a grammar returns to",
     "those that are inside of most rules are given up"},
    {"grammar_states_bytes", LimitUnit::bytes, 96 * kMiB, "what one worker keeps of states and masks of grammars",
     "they are computed again"},
    {"grammar_mask_work", LimitUnit::count, 400'000, "steps to find masks after one step of the model",
     "they are found after the next ones, and their requests get no token until then"},
    {"grammar_mask_steps", LimitUnit::count, 64, "steps of the model that a token waits for its mask",
     "tokens that were found so far may come, and the most likely ones"},
    {"grammar_copies_bytes", LimitUnit::bytes, 64 * kMiB, "a grammar for each of several answers", "400"},
    {"grammar_skips", LimitUnit::count, 256, "parts of a grammar in a row that may be left out", "400"},
    {"schema_depth", LimitUnit::count, 60, "nesting of a schema", "400"},
    {"schema_parts", LimitUnit::count, 2000, "parts of a schema", "400"},
    {"schema_properties", LimitUnit::count, 200, "properties of one object of a schema", "400"},
    {"schema_name_bytes", LimitUnit::bytes, 256, "the name of a property, of a tool, or a $ref", "400"},
    {"schema_path_bytes", LimitUnit::bytes, 512 * kKiB, "the paths to all parts of a schema, added up", "400"},
    {"schema_alternatives", LimitUnit::count, 100, "alternatives of one oneOf", "400"},
    {"schema_seconds", LimitUnit::time, 2 * kSecond, "computing of a grammar for a schema", "400"},
    {"schema_stack_bytes", LimitUnit::bytes, 512 * kKiB, "stack that a schema of a tool takes", "400"},
    {"schema_text_bytes", LimitUnit::bytes, 16 * kMiB, "names and rules that the schemas of tools become", "400"},
    {"schema_grammars_bytes", LimitUnit::bytes, 1 * kMiB, "schemas and their grammars that a thread of the pool keeps",
     "the one that was used least recently is written again when it is needed", "chasqui_schema_grammars_total"},
    {"schema_repeats", LimitUnit::count, 2000, "minItems, maxItems, minLength, maxLength of a schema", "400"},
    {"schema_merges", LimitUnit::count, 200'000, "keywords looked at where schemas hold at once", "400"},
    {"pattern_bytes", LimitUnit::bytes, 1024, "one pattern", "400"},
    {"pattern_states", LimitUnit::count, 10'000, "states of a pattern, and of patterns that hold at once", "400"},
    {"pattern_work", LimitUnit::count, 20'000'000, "steps to make the states of a pattern", "400"},
    {"pattern_depth", LimitUnit::count, 20, "nesting of a pattern", "400"},
    // Admission
    {"queue_requests", LimitUnit::count, 10'000,
     "requests that wait for a slot; an eighth more of tenants that have less than that", "503, Retry-After",
     "chasqui_requests_refused_total", "--queue-requests"},
    {"queue_tokens", LimitUnit::count, 16'777'216,
     "prompt tokens that wait, of 4 bytes each; an eighth more of tenants that have less than that", "503, Retry-After",
     "chasqui_requests_refused_total", "--queue-tokens"},
    {"queue_wait_seconds", LimitUnit::time, 0, "forecast wait for a first token, by class", "503, Retry-After",
     "chasqui_requests_refused_total", "--queue-wait", "none"},
    {"queue_timeout_seconds", LimitUnit::time, 600 * kSecond, "a request that waits for a slot",
     "503; an error event where its stream has begun", "chasqui_queue_timeouts_total", "--queue-timeout"},
    {"retry_reservations", LimitUnit::count, 16'384, "retry reservations", "503 without a place",
     "chasqui_retry_reservations_open"},
    {"tenant_requests", LimitUnit::count, 64, "requests in flight of one tenant", "429, Retry-After",
     "chasqui_requests_refused_total", "--tenant-requests", "64; none where there is one tenant"},
    // Sessions and responses
    {"sessions", LimitUnit::count, 1024, "sessions open at once", "503", "chasqui_sessions", "--sessions-max"},
    {"tenant_sessions", LimitUnit::count, 0, "sessions of one tenant open at once", "429", "chasqui_sessions",
     "--tenant-sessions", "a quarter of sessions; without keys none"},
    {"session_tokens", LimitUnit::count, 0, "tokens of one session", "400", "chasqui_session_tokens", "--ctx-size",
     "what a slot holds, less one"},
    {"session_messages", LimitUnit::count, 4096, "messages of one session", "400"},
    {"session_media_files", LimitUnit::count, 64, "pictures and sounds of one session", "400"},
    {"session_media_bytes", LimitUnit::bytes, 32 * kMiB, "pictures and sounds of one session, as files", "400"},
    {"sessions_media_bytes", LimitUnit::bytes, 512 * kMiB, "pictures and sounds of all sessions of a model, as files",
     "503", "chasqui_session_media_bytes"},
    {"tenant_sessions_media_bytes", LimitUnit::bytes, 128 * kMiB,
     "pictures and sounds of one tenant's sessions, as files; without keys as many as of all", "429",
     "chasqui_session_media_bytes"},
    {"session_ttl_seconds", LimitUnit::time, 3600 * kSecond, "an unused session", "it ends",
     "chasqui_sessions_expired_total", "--session-ttl"},
    {"session_ttl_max_seconds", LimitUnit::time, 86'400 * kSecond,
     "how long a client may ask that a session is kept unused", "400"},
    {"responses", LimitUnit::count, 8192, "responses that are remembered", "the oldest is forgotten"},
    {"tenant_responses", LimitUnit::count, 2048, "responses of one tenant that are remembered",
     "the oldest is forgotten"},
    {"tenant_response_bytes", LimitUnit::bytes, 64 * kMiB, "responses of one tenant, together",
     "the oldest is forgotten"},
    {"response_seconds", LimitUnit::time, 3600 * kSecond, "how long a response is remembered", "forgotten"},
    {"idempotency_key_bytes", LimitUnit::bytes, 255, "an Idempotency-Key", "400"},
    {"idempotent_answers", LimitUnit::count, 4096, "answers that are kept for their Idempotency-Key",
     "the oldest is forgotten", "chasqui_idempotent_answers"},
    {"idempotent_answer_bytes", LimitUnit::bytes, 1 * kMiB, "one answer that is kept for its Idempotency-Key",
     "it is not kept"},
    {"idempotent_tenant_bytes", LimitUnit::bytes, 16 * kMiB,
     "answers of one tenant that are kept for their Idempotency-Key", "its oldest is forgotten",
     "chasqui_idempotent_answer_bytes"},
    {"idempotent_bytes", LimitUnit::bytes, 128 * kMiB, "all answers that are kept for their Idempotency-Key",
     "the oldest is forgotten", "chasqui_idempotent_answer_bytes"},
    {"idempotent_seconds", LimitUnit::time, 3600 * kSecond, "how long an answer is kept for its Idempotency-Key",
     "forgotten"},
    // Files and batches (docs/batches.md)
    {"batch_disk_bytes", LimitUnit::bytes, 16'384 * kMiB, "files and results in the folder of --batch-dir",
     "507 for new files; results wait in memory, and no further lines run", "chasqui_batch_disk_bytes", "--batch-mib"},
    {"batch_tenant_bytes", LimitUnit::bytes, 4096 * kMiB, "files and results of one tenant, where several have keys",
     "413; no further lines of its batches run", "chasqui_batch_disk_bytes"},
    {"batch_files", LimitUnit::count, 1000, "files of one tenant", "429", "chasqui_batch_files"},
    {"batch_name_bytes", LimitUnit::bytes, 255, "the name of a file", "400"},
    {"batch_parts", LimitUnit::count, 16, "parts of an upload", "400"},
    {"batches_open", LimitUnit::count, 64, "batches of one tenant that have not ended", "429", "chasqui_batches"},
    {"batches_kept", LimitUnit::count, 1000, "batches of one tenant, those that have ended among them",
     "the oldest that has ended is forgotten", "chasqui_batches"},
    {"batch_lines", LimitUnit::count, 50'000, "lines of a batch", "the batch fails"},
    {"batch_line_bytes", LimitUnit::bytes, 4 * kMiB, "one line of a batch", "the batch fails"},
    {"batch_id_bytes", LimitUnit::bytes, 256, "a custom_id", "the batch fails"},
    {"batch_errors", LimitUnit::count, 100, "faulty lines that a failed batch names", "further ones are not named"},
    {"batch_attempts", LimitUnit::count, 3, "tries of a line that the server fails to answer",
     "its error is the line's answer", "chasqui_batch_retries_total"},
    {"batch_metadata", LimitUnit::count, 16, "metadata of a batch, keys of 64 bytes and values of 512", "400"},
    {"batch_window_seconds", LimitUnit::time, 30 * 86'400 * kSecond, "the completion_window of a batch", "400"},
    {"batch_keep_seconds", LimitUnit::time, 30 * 86'400 * kSecond, "a batch after its end, and its results",
     "forgotten"},
    // What was computed
    {"prefix_cache_bytes", LimitUnit::bytes, 8192 * kMiB, "snapshots in host memory",
     "the least useful is dropped, or goes to disk", "chasqui_snapshot_bytes", "--cache-ram",
     "8192 MiB, at most a quarter of the memory"},
    {"disk_cache_bytes", LimitUnit::bytes, 16'384 * kMiB, "snapshots and encoded media in files",
     "the least useful is deleted", "chasqui_disk_evictions_total", "--cache-disk-mib"},
    {"slot_files_bytes", LimitUnit::bytes, 16'384 * kMiB,
     "slots that clients have saved, a fourth of it of one tenant where there are others", "413",
     "chasqui_slot_files_refused_total", "--slot-save-mib"},
    {"slot_name_bytes", LimitUnit::bytes, 128, "the name of a file with a saved slot", "400"},
    // Inside
    {"offload_jobs", LimitUnit::count, 32'768, "bodies that wait to be read, half of them long or constrained",
     "503 for the tenant that has most of them", "chasqui_offload_refused_total"},
    {"offload_bytes", LimitUnit::bytes, 512 * kMiB, "bodies that wait to be read, together",
     "503 for the tenant that has most of them", "chasqui_offload_refused_total"},
    {"offload_job_seconds", LimitUnit::time, 10 * kSecond, "computing for one body that is being read",
     "/health is 503"},
    {"freed_later", LimitUnit::count, 65'536, "sessions, and lots of answers, that wait to be freed off the loop",
     "further ones are freed at once"},
    {"log_lines", LimitUnit::count, 4096, "log lines that standard error has not taken", "the newest are left out",
     "chasqui_log_lines_dropped_total"},
    {"undelivered_events", LimitUnit::count, 4096,
     "events of one slot that the loop has not taken, and 16 of each request", "all requests are cancelled"},
    {"stuck_seconds", LimitUnit::time, 30 * kSecond, "a step", "/health is 503, its requests get an error",
     "chasqui_worker_stalls_total", "--stuck-after"},
    {"drain_seconds", LimitUnit::time, 30 * kSecond, "running requests after SIGTERM", "cut", "", "--drain-time"},
    // What operators write
    {"settings_file_bytes", LimitUnit::bytes, 4 * kMiB, "the file of --config, of --models-preset", "it is refused"},
    // Keys
    {"keys", LimitUnit::count, 2048, "keys of a file", "it is refused"},
    {"key_name_bytes", LimitUnit::bytes, 64, "the name of a key", "the file is refused"},
    {"key_file_bytes", LimitUnit::bytes, 4 * kMiB, "the file of keys", "it is refused"},
    {"key_requests", LimitUnit::count, 100'000, "in_flight of a key", "the file is refused"},
    // Watching
    {"step_watchers", LimitUnit::count, 32, "readers of /debug/steps", "503"},
    {"sequences_listed", LimitUnit::count, 256, "sequences in /debug/sequences", "the rest is counted only"},
    {"record_bytes", LimitUnit::bytes, 2048 * kMiB, "the file of --record", "the recording ends, and says so",
     "chasqui_recording"},
    {"record_waiting_bytes", LimitUnit::bytes, 64 * kMiB, "what of a recording waits for the disk",
     "the recording ends, and says so", "chasqui_recording"},
    {"kv_event_batches", LimitUnit::count, 10'000, "messages after --kv-events has told all, that can be repeated",
     "all is told again", "chasqui_kv_event_replays_total"},
    {"kv_event_bytes", LimitUnit::bytes, 64 * kMiB, "… their size", "all is told again", "chasqui_kv_event_kept_bytes"},
    {"kv_event_queue", LimitUnit::count, 256, "messages of --kv-events that wait for one reader", "it loses some"},
    {"traces", LimitUnit::count, 4, "traces at once (/debug/trace)", "503"},
    {"trace_seconds", LimitUnit::time, 60 * kSecond, "one trace", "400"},
    {"metrics_bytes", LimitUnit::bytes, 80 * kKiB, "the page of metrics, for each model",
     "buckets are left out, the longest histogram first; then workers become one sum"},
    {"requests_remembered", LimitUnit::count, 1024, "requests that traces can look back to", "the oldest is forgotten"},
    {"spans_queued", LimitUnit::count, 2048, "requests whose spans wait for the collector", "dropped",
     "chasqui_traces_dropped_total"},
};

template <std::size_t N>
struct Name {
  constexpr Name(const char (&name)[N]) { std::copy_n(name, N, text); }  // implicit, so that a literal is a name
  constexpr bool is(std::string_view other) const { return other == std::string_view(text, N - 1); }
  char text[N] = {};
};

template <Name name>
constexpr const Limit& find() {
  constexpr auto same = [](const Limit& limit) { return name.is(limit.name); };
  constexpr const Limit* found = std::find_if(std::begin(kTable), std::end(kTable), same);
  static_assert(found != std::end(kTable), "the table of limits has no such name");
  return *found;
}

}  // namespace limits_detail

// All of them, in the order in which people read them.
inline constexpr auto& kLimits = limits_detail::kTable;

template <limits_detail::Name name>
constexpr std::int64_t kCountLimit = limits_detail::find<name>().standard;

template <limits_detail::Name name>
constexpr std::size_t kSizeLimit = static_cast<std::size_t>(kCountLimit<name>);

template <limits_detail::Name name>
constexpr Duration kTimeLimit = milliseconds(kCountLimit<name>);

}  // namespace chasqui
