"""A client written by a reader of docs/protocol.md and nothing else. Prints one JSON object: what it saw."""
import json
import socket
import struct
import sys


def write(connection, message):
    body = json.dumps(message).encode("utf-8")
    connection.sendall(struct.pack("<I", len(body)) + body)


def read_exactly(connection, size):
    out = b""
    while len(out) < size:
        piece = connection.recv(size - len(out))
        if not piece:
            raise EOFError("closed")
        out += piece
    return out


def read(connection):
    (length,) = struct.unpack("<I", read_exactly(connection, 4))
    return json.loads(read_exactly(connection, length).decode("utf-8"))


def until_end(connection, ids):
    """Events of all of `ids` until each has ended."""
    events = {id: [] for id in ids}
    order = []
    left = set(ids)
    while left:
        event = read(connection)
        events[event["id"]].append(event)
        order.append(event["id"])
        if event["event"] in ("eos", "error", "result"):
            left.remove(event["id"])
    return events, order


def text_of(events):
    return "".join(event["text"] for event in events if event["event"] == "token")


def main():
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(60)
    connection.connect(sys.argv[1])
    seen = {}

    # One question.
    question = [{"role": "user", "content": sys.argv[2]}]
    write(connection, {"id": "one", "messages": question, "temperature": 0, "metadata": {"from": "afar"}})
    events, _ = until_end(connection, ["one"])
    end = events["one"][-1]
    seen["answer"] = text_of(events["one"])
    seen["reason"] = end["reason"]
    seen["metadata"] = end["metadata"]
    seen["tokens_match_usage"] = (
        sum(event["event"] == "token" for event in events["one"]) == end["usage"]["completion_tokens"])
    seen["token_ids"] = all(isinstance(event["token_id"], int) for event in events["one"] if event["event"] == "token")

    # The same without a stream.
    write(connection, {"id": 2, "messages": question, "temperature": 0, "stream": False})
    events, _ = until_end(connection, [2])
    seen["whole"] = events[2][-1]["text"]
    seen["whole_events"] = [event["event"] for event in events[2] if event["event"] != "queued"]

    # Four at once, told apart by their ids.
    ids = ["a", "b", 3, 4]
    together = b""
    for id in ids:
        body = json.dumps({"id": id, "messages": question, "temperature": 0, "max_tokens": 99, "ignore_eos": True})
        together += struct.pack("<I", len(body)) + body.encode("ascii")
    connection.sendall(together)
    events, order = until_end(connection, ids)
    seen["same"] = len({text_of(events[id]) for id in ids}) == 1
    seen["changes"] = sum(order[i] != order[i - 1] for i in range(1, len(order)))

    # A session, of which only what is new is sent.
    write(connection, {"id": "s", "event": "session.create", "messages": [{"role": "system", "content": "Be brief."}]})
    session = until_end(connection, ["s"])[0]["s"][0]["result"]["id"]
    write(connection, {"id": "s", "event": "session.append", "session": session, "message": question[0]})
    until_end(connection, ["s"])
    write(connection, {"id": "s", "event": "session.generate", "session": session, "temperature": 0})
    events, _ = until_end(connection, ["s"])
    seen["session_answer"] = text_of(events["s"])
    write(connection, {"id": "s", "event": "session.end", "session": session})
    seen["session_deleted"] = until_end(connection, ["s"])[0]["s"][0]["result"]["deleted"]

    # What must be refused, by its name.
    write(connection, {"id": "wrong", "prompt": "x", "max_tokens": "many"})
    seen["refused"] = until_end(connection, ["wrong"])[0]["wrong"][0]
    write(connection, {"id": "health", "event": "health"})
    seen["health"] = until_end(connection, ["health"])[0]["health"][0]["result"]

    # Cancelled in the middle.
    write(connection, {"id": "long", "messages": question, "ignore_eos": True})
    while read(connection)["event"] != "token":
        pass
    write(connection, {"id": "long", "event": "cancel"})
    events, _ = until_end(connection, ["long"])
    seen["cancelled"] = events["long"][-1]["reason"]
    print(json.dumps(seen))


main()
