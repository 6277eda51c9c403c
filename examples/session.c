/* libchasqui from C: a chat, then a session, two questions, a fork. With the library installed:
 *   cc -std=c11 session.c -lchasqui -o session && ./session [MODEL.gguf]      the built-in demo model without one */
#include <chasqui.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(chasqui_status status) {
  if (status == CHASQUI_OK) return;
  fprintf(stderr, "%s\n", chasqui_error());
  exit(1);
}

/* `text` as a JSON string. */
static void print_json_string(char* out, size_t room, const char* text) {
  size_t at = 0;
  out[at++] = '"';
  for (; *text != '\0' && at + 8 < room; ++text) {
    const unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\' || c < 0x20) {
      at += (size_t)snprintf(out + at, room - at, "\\u%04x", c);
    } else {
      out[at++] = (char)c;
    }
  }
  out[at++] = '"';
  out[at] = '\0';
}

/* Shows each piece as it comes; chasqui_run() returns when nothing runs any more. */
static int show(void* user, const chasqui_event* event) {
  (void)user;
  switch (chasqui_event_kind(event)) {
    case CHASQUI_PART: fputs(chasqui_event_text(event, NULL), stdout); break;
    case CHASQUI_END:
      printf("\n  (%lld tokens in, %lld of them known, %lld out)\n",
             (long long)chasqui_event_tokens(event, CHASQUI_TOKENS_PROMPT),
             (long long)chasqui_event_tokens(event, CHASQUI_TOKENS_CACHED),
             (long long)chasqui_event_tokens(event, CHASQUI_TOKENS_ANSWER));
      break;
    case CHASQUI_FAILED: printf("\n  failed: %s\n", chasqui_event_text(event, NULL)); break;
  }
  fflush(stdout);
  return 0;
}

/* Only the question goes in: the session knows what was said before. */
static void ask(chasqui_engine* engine, const char* session, const char* question) {
  char body[1024] = "{\"message\":{\"role\":\"user\",\"content\":";
  print_json_string(body + strlen(body), sizeof body - strlen(body) - 3, question);
  strcat(body, "}}");
  printf("> %s\n", question);
  require(chasqui_session_append(engine, session, body));
  require(chasqui_session_generate(engine, session, "{\"temperature\":0,\"max_tokens\":100,\"stream\":true}", NULL));
  require(chasqui_run(engine, show, NULL));
}

int main(int argc, char** argv) {
  if (chasqui_abi() != CHASQUI_ABI) {
    fprintf(stderr, "libchasqui %s is of another ABI than chasqui.h\n", chasqui_version());
    return 1;
  }
  char settings[4200] = "{}";
  if (argc > 1) {
    strcpy(settings, "{\"model\":");
    print_json_string(settings + strlen(settings), sizeof settings - strlen(settings) - 2, argv[1]);
    strcat(settings, "}");
  }
  chasqui_engine* engine = NULL;
  require(chasqui_open(settings, &engine));

  /* Two at once, each answered in one piece. */
  for (int i = 0; i < 2; ++i) {
    require(chasqui_chat(
        engine, "{\"messages\":[{\"role\":\"user\",\"content\":\"What is Chasqui?\"}],\"max_tokens\":20}", NULL));
  }
  for (const chasqui_event* event; (event = chasqui_next(engine, -1)) != NULL;) {
    printf("%llu: %s\n", (unsigned long long)chasqui_event_request(event), chasqui_event_text(event, NULL));
  }

  char session[CHASQUI_SESSION_BYTES];
  char fork[CHASQUI_SESSION_BYTES];
  require(chasqui_session_create(engine, NULL, session));
  ask(engine, session, "What is Chasqui?");
  require(chasqui_session_fork(engine, session, fork));
  ask(engine, session, "What is a slot?");
  ask(engine, fork, "Who are you?");
  require(chasqui_session_end(engine, fork));
  require(chasqui_session_end(engine, session));
  chasqui_close(engine);
  return 0;
}
