#!/usr/bin/env python3
"""libchasqui from Python, with ctypes: a chat, then a session, two questions, a fork.

    session.py [MODEL.gguf]      the built-in demo model without one

LIBCHASQUI names the library, where it is not among those of the system.
"""
import ctypes
import json
import os
import sys

ABI = 1
PART, END, FAILED = 1, 2, 3
PROMPT, CACHED, ANSWER = 1, 2, 3
SESSION_BYTES = 64

engine_p = ctypes.c_void_p
event_p = ctypes.c_void_p
number_p = ctypes.POINTER(ctypes.c_uint64)
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, event_p)

# name: what it returns, what it takes. As in chasqui.h.
FUNCTIONS = {
    "chasqui_version": (ctypes.c_char_p, []),
    "chasqui_abi": (ctypes.c_uint32, []),
    "chasqui_error": (ctypes.c_char_p, []),
    "chasqui_open": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(engine_p)]),
    "chasqui_close": (None, [engine_p]),
    "chasqui_chat": (ctypes.c_int, [engine_p, ctypes.c_char_p, number_p]),
    "chasqui_cancel": (ctypes.c_int, [engine_p, ctypes.c_uint64]),
    "chasqui_session_create": (ctypes.c_int, [engine_p, ctypes.c_char_p, ctypes.c_char_p]),
    "chasqui_session_append": (ctypes.c_int, [engine_p, ctypes.c_char_p, ctypes.c_char_p]),
    "chasqui_session_generate": (ctypes.c_int, [engine_p, ctypes.c_char_p, ctypes.c_char_p, number_p]),
    "chasqui_session_fork": (ctypes.c_int, [engine_p, ctypes.c_char_p, ctypes.c_char_p]),
    "chasqui_session_end": (ctypes.c_int, [engine_p, ctypes.c_char_p]),
    "chasqui_next": (event_p, [engine_p, ctypes.c_int]),
    "chasqui_run": (ctypes.c_int, [engine_p, CALLBACK, ctypes.c_void_p]),
    "chasqui_event_kind": (ctypes.c_int, [event_p]),
    "chasqui_event_request": (ctypes.c_uint64, [event_p]),
    "chasqui_event_json": (ctypes.c_char_p, [event_p]),
    "chasqui_event_text": (ctypes.c_char_p, [event_p, ctypes.POINTER(ctypes.c_size_t)]),
    "chasqui_event_tokens": (ctypes.c_int64, [event_p, ctypes.c_int]),
}


class Chasqui:
    def __init__(self, **settings):
        self.library = ctypes.CDLL(os.environ.get("LIBCHASQUI", "libchasqui.so.1"))
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
        if self.library.chasqui_abi() != ABI:
            raise RuntimeError("libchasqui is of another ABI")
        self.engine = engine_p()
        self.call("open", json.dumps(settings).encode(), ctypes.byref(self.engine))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.chasqui_close(self.engine)

    def call(self, name, *arguments):
        if getattr(self.library, "chasqui_" + name)(*arguments):
            raise RuntimeError(self.library.chasqui_error().decode())

    def chat(self, **body):
        number = ctypes.c_uint64()
        self.call("chat", self.engine, json.dumps(body).encode(), ctypes.byref(number))
        return number.value

    def events(self):
        """(number of the request, kind, JSON, text, tokens of the prompt and those that were known), until nothing runs."""
        get = self.library
        while event := get.chasqui_next(self.engine, -1):
            tokens = [get.chasqui_event_tokens(event, which) for which in (PROMPT, CACHED)]
            yield (get.chasqui_event_request(event), get.chasqui_event_kind(event),
                   json.loads(get.chasqui_event_json(event)), get.chasqui_event_text(event, None).decode(), tokens)

    def session(self):
        session = ctypes.create_string_buffer(SESSION_BYTES)
        self.call("session_create", self.engine, None, session)
        return session.value

    def fork(self, session):
        fork = ctypes.create_string_buffer(SESSION_BYTES)
        self.call("session_fork", self.engine, session, fork)
        return fork.value

    def ask(self, session, question):
        """Only the question goes in: the session knows what was said before."""
        body = {"message": {"role": "user", "content": question}}
        self.call("session_append", self.engine, session, json.dumps(body).encode())
        how = {"temperature": 0, "max_tokens": 100, "stream": True}
        self.call("session_generate", self.engine, session, json.dumps(how).encode(), None)
        return self.events()


def show(question, events):
    print(">", question)
    for _, kind, body, text, (prompt, known) in events:
        if kind == FAILED:
            raise RuntimeError(text)
        print(text, end="", flush=True)
        if kind == END:
            print(f"\n  ({prompt} tokens in, {known} of them known; {body['timings']['cpu_ms']:.0f} ms of CPU time)")


def main():
    settings = {"model": sys.argv[1]} if len(sys.argv) > 1 else {}
    with Chasqui(**settings) as chasqui:
        numbers = {chasqui.chat(messages=[{"role": "user", "content": "What is Chasqui?"}], max_tokens=20) for _ in range(2)}
        answered = {number: text for number, kind, _, text, _ in chasqui.events() if kind == END}
        assert set(answered) == numbers
        print(answered)

        session = chasqui.session()
        show("What is Chasqui?", chasqui.ask(session, "What is Chasqui?"))
        fork = chasqui.fork(session)
        show("What is a slot?", chasqui.ask(session, "What is a slot?"))
        show("Who are you?", chasqui.ask(fork, "Who are you?"))
        for each in (fork, session):
            chasqui.call("session_end", chasqui.engine, each)


if __name__ == "__main__":
    main()
