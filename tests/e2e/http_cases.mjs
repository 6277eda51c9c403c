// Bytes that a client may send, and how each request among them must be answered: RFC 9110 and 9112, and the published
// lists of request smuggling. A case is [what, bytes, statuses]. Behind the bytes the test sends one more request, asking
// to close: a connection that is still sound answers it with 200, so the statuses of a sound one end in 200, and those
// of one that must be closed do not. `alone` cases get no such request; their client ends its sending half instead.
//
// Bytes are written as latin1.
const host = 'Host: localhost\r\n';
const head = (line, headers = host) => `${line}\r\n${headers}\r\n`;
const get = (headers = '', target = '/health') => head(`GET ${target} HTTP/1.1`, host + headers);
const body = '{"content":"x"}';
const post = (headers, rest = body) => head('POST /tokenize HTTP/1.1', host + headers) + rest;
const chunked = (rest, headers = '') => post(`Transfer-Encoding: chunked\r\n${headers}`, rest);
const hex = body.length.toString(16);
const chunk = `${hex}\r\n${body}\r\n`;
const last = '0\r\n\r\n';
const hidden = 'GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n'; // would be 404, were it ever read as a request
const byte = (code) => String.fromCharCode(code);
const name = (code) => `0x${code.toString(16).padStart(2, '0')}`;
const times = (n, what) => Array.from({ length: n }, (_, i) => what(i)).join('');

const ok = [200, 200];
const bad = [400];

const methods = [
  ...['GET', 'HEAD'].map((method) => [`${method} is answered`, head(`${method} /health HTTP/1.1`), ok]),
  ['HEAD of a stream ends with its head', head('HEAD /debug/steps HTTP/1.1'), ok],
  ['OPTIONS of any route', head('OPTIONS /health HTTP/1.1'), [204, 200]],
  ...['POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [
    `${method} of a route that has no such method`, head(`${method} /health HTTP/1.1`, `${host}Content-Length: 0\r\n`),
    [405, 200]]),
  ...['TRACE', 'CONNECT', 'BREW', 'get', 'Get', 'GETT', 'PROPFIND', 'M-SEARCH', 'X'.repeat(300), '!#$%&\'*+-.^_`|~'].map(
    (method) => [`the method ${method.slice(0, 20)}`, head(`${method} /health HTTP/1.1`), [501]]),
  ['CONNECT with an authority', head('CONNECT localhost:80 HTTP/1.1'), [501]],
  ['a method of nothing', head(' /health HTTP/1.1'), bad],
  ...['(', ')', '/', ':', ';', '<', '=', '>', '?', '@', '[', '\\', ']', '{', '}', '"', ','].map((c) => [
    `a method with ${c}`, head(`GE${c}T /health HTTP/1.1`), bad]),
  ...[0, 1, 8, 11, 12, 27, 127, 128, 255].map((code) => [
    `a method with ${name(code)}`, head(`GE${byte(code)}T /health HTTP/1.1`), bad]),
];

const targets = [
  ['an absolute target', head('GET http://localhost/health HTTP/1.1'), ok],
  ['an absolute target with a port and a query', head('GET http://127.0.0.1:8080/health?x=1 HTTP/1.1'), ok],
  ['an absolute target in capitals', head('GET HTTP://LOCALHOST/health HTTP/1.1'), ok],
  ['an absolute target of https', head('GET https://localhost/health HTTP/1.1'), ok],
  ['an absolute target without a path', head('GET http://localhost HTTP/1.1'), [200, 200]],
  ['an absolute target without an authority', head('GET http:///health HTTP/1.1'), bad],
  ['an absolute target with a user', head('GET http://user@localhost/health HTTP/1.1'), bad],
  ['an absolute target of ftp', head('GET ftp://localhost/health HTTP/1.1'), bad],
  ['an authority as a target', head('GET localhost:80 HTTP/1.1'), bad],
  ['an asterisk for GET', head('GET * HTTP/1.1'), bad],
  ['an asterisk for OPTIONS', head('OPTIONS * HTTP/1.1'), [204, 200]],
  ['a target without a slash', head('GET health HTTP/1.1'), bad],
  ['a query as a target', head('GET ?x HTTP/1.1'), bad],
  ['a fragment', get('', '/health#x'), bad],
  ['a target with a quoted quote', get('', '/health?a=%22'), ok],
  ['two slashes', get('', '//health'), [404, 200]],
  ['dots', get('', '/../health'), [404, 200]],
  ['encoded dots', get('', '/%2e%2e/health'), [404, 200]],
  ['an encoded slash', get('', '/v1%2fmodels'), [404, 200]],
  ['an encoded letter', get('', '/h%65alth'), ok],
  ['a slash at the end', get('', '/health/'), [404, 200]],
  ['capitals', get('', '/HEALTH'), [404, 200]],
  ['a query with everything', get('', '/health?a=b&c=%20+d&&=&e'), ok],
  ['a query with a bad escape', get('', '/health?a=%zz'), ok],
  ...['%', '%0', '%zz', '%00', '%-1'].map((text) => [`the escape ${text} in a path`, get('', `/health${text}`), bad]),
  ...[0, 1, 9, 11, 12, 27, 127].map((code) => [
    `a target with ${name(code)}`, get('', `/health${byte(code)}`), bad]),
  ...[128, 195, 255].map((code) => [`a target with ${name(code)}`, get('', `/health${byte(code)}`), bad]),
  ['a space in the target', get('', '/hea lth'), bad],
  ['a target of 8,000 bytes', get('', `/${'x'.repeat(8000)}`), [404, 200]],
  ['a target that is too long', get('', `/${'x'.repeat(9000)}`), [414]],
  ['a target of 8,000 escapes that is too long', get('', `/${'%41'.repeat(3000)}`), [414]],
];

const versions = [
  ...['HTTP/1.2', 'HTTP/1.9', 'HTTP/2.0', 'HTTP/3.0', 'HTTP/0.9', 'HTTP/9.9'].map((version) => [
    version, head(`GET /health ${version}`), [505]]),
  ...['HTTP/1', 'HTTP/1.', 'HTTP/.1', 'HTTP/1.10', 'HTTP/01.1', 'HTTP/1,1', 'HTTP/1.1x', 'http/1.1', 'HTTP1.1', 'HTP/1.1',
    'HTTP/ 1.1', 'HTTP /1.1', 'HTTP/1.1 ', ' HTTP/1.1', 'HTTP/1.1\t', 'HTTP/-1.1', 'HTTP/1.x', 'HTTPS/1.1', 'HTTP\\1.1',
    'H\u0000TP/1.1', 'ICE/1.0', 'RTSP/1.0'].map((version) => [
    `the version ${JSON.stringify(version)}`, head(`GET /health ${version}`), bad]),
  ['no version', head('GET /health'), bad],
  ['a line of HTTP/0.9', 'GET /health\r\n', bad],
  ['a method alone', 'GET\r\n\r\n', bad],
  ['two spaces before the target', head('GET  /health HTTP/1.1'), bad],
  ['two spaces before the version', head('GET /health  HTTP/1.1'), bad],
  ['a tab before the target', head('GET\t/health HTTP/1.1'), bad],
  ['a space before the method', head(' GET /health HTTP/1.1'), bad],
  ['a form feed before the version', head('GET /health\fHTTP/1.1'), bad],
  ['one blank line before', `\r\n${get()}`, ok],
  ['two blank lines before', `\r\n\r\n${get()}`, ok],
  ['three blank lines before', `\r\n\r\n\r\n${get()}`, bad],
  ['bare line feeds before', `\n\n${get()}`, bad],
];

const lines = [
  ['a line feed alone', get().replaceAll('\r', ''), bad],
  ['a carriage return alone', get().replaceAll('\n', ''), bad],
  ['a line feed after the request line', get().replace('\r\n', '\n'), bad],
  ['two carriage returns', get().replace('\r\n', '\r\r\n'), bad],
  ['a line feed at the end of the head', 'GET /health HTTP/1.1\r\nHost: localhost\r\n\n', bad],
  ['a carriage return inside a value', get('X: a\rb\r\n'), bad],
  ['a line feed inside a value', get('X: a\nTransfer-Encoding: chunked\r\n'), bad],
  ['a value that folds with a space', get('X: a\r\n b\r\n'), bad],
  ['a value that folds with a tab', get('X: a\r\n\tb\r\n'), bad],
  ['a folded length', post('Content-Length:\r\n 15\r\n'), bad],
  ['a folded encoding', post('Transfer-Encoding:\r\n chunked\r\n', chunk + last), bad],
  ['a first header that folds', `GET /health HTTP/1.1\r\n X: a\r\n${host}\r\n`, bad],
  ['a line of a space', get(' \r\n'), bad],
  ['a line without a colon', get('oddity\r\n'), bad],
  ['a header without a name', get(': x\r\n'), bad],
  ['a header without a value', get('X:\r\n'), ok],
  ['a header of blanks', get('X: \t \r\n'), ok],
  ['blanks around a value', get('X: \t x \t\r\n'), ok],
  ['a tab inside a value', get('X: a\tb\r\n'), ok],
  ['no blank before the value', get('X:a\r\n'), ok],
  ['colons in a value', get('X: a:b:c\r\n'), ok],
  ...[...'(),/;<=>?@[\\]{}" \t'].map((c) => [`a header name with ${JSON.stringify(c)}`, get(`X${c}Y: a\r\n`), bad]),
  ...['!', '#', '$', '%', '&', "'", '*', '+', '-', '.', '^', '_', '`', '|', '~', '0'].map((c) => [
    `a header name with ${c}`, get(`X${c}Y: a\r\n`), ok]),
  ...[0, 1, 7, 11, 12, 14, 27, 31, 127, 128, 160, 255].map((code) => [
    `a header name with ${name(code)}`, get(`X${byte(code)}: a\r\n`), bad]),
  ...[0, 1, 7, 8, 11, 12, 14, 27, 31, 127].map((code) => [
    `a value with ${name(code)}`, get(`X: a${byte(code)}b\r\n`), bad]),
  ...[128, 195, 255].map((code) => [`a value with ${name(code)}`, get(`X: a${byte(code)}b\r\n`), ok]),
  ['a space before the colon', get('X : a\r\n'), bad],
  ['a tab before the colon', get('X\t: a\r\n'), bad],
];

const hosts = [
  ['no host', head('GET /health HTTP/1.1', ''), bad],
  ['no host in HTTP/1.0', head('GET /health HTTP/1.0', 'Connection: keep-alive\r\n'), ok],
  ['two hosts', get('Host: localhost\r\n'), bad],
  ['two different hosts', get('Host: elsewhere\r\n'), bad],
  ['two hosts in HTTP/1.0', head('GET /health HTTP/1.0', host + host), bad],
  ...['', 'example.org', 'example.org:80', 'example.org:', '127.0.0.1', '[::1]', '[::1]:8080', 'a-b_c.d~e', '%41.example'].map(
    (value) => [`the host "${value}"`, head('GET /health HTTP/1.1', `Host: ${value}\r\n`), ok]),
  ...['a b', 'a/b', 'a,b', 'user@a', 'a?b', 'a#b', 'a\\b', '<a>', 'a:b', 'a:80:80', '[::1', '::1', 'a:-1', 'a"b', 'a{}',
    'a:80x', 'http://a', 'a\u0080'].map((value) => [
    `the host "${value}"`, head('GET /health HTTP/1.1', `Host: ${value}\r\n`), bad]),
];

const lengths = [
  ['a length', post('Content-Length: 15\r\n'), ok],
  ['a length in other letters', post('cOnTeNt-LeNgTh: 15\r\n'), ok],
  ['a length with zeros before', post('Content-Length: 0015\r\n'), ok],
  ['a length with blanks around', post('Content-Length:   15  \r\n'), ok],
  ['a length with tabs around', post('Content-Length: \t15\t\r\n'), bad], // allowed, and not sent by benign clients
  ...['+15', '-15', '15.0', '0xf', '15 15', '15,15', '15, 16', '1e1', '', ' ', 'many', '15;', '"15"', "'15'", '\u000b15',
    '15\u0000', '1 5', '15\u00a0', '\u00b9\u00b2'].map((value) => [
    `the length ${JSON.stringify(value)}`, post(`Content-Length: ${value}\r\n`), bad]),
  ['a length of 2^64', post('Content-Length: 18446744073709551616\r\n'), bad],
  ['a length of 2^64 + 15', post('Content-Length: 18446744073709551631\r\n'), bad],
  ['a length of 2^64 - 1', post('Content-Length: 18446744073709551615\r\n'), [413]],
  ['a length of 2^63', post('Content-Length: 9223372036854775808\r\n'), [413]],
  ['a length of 2^32 + 15', post('Content-Length: 4294967311\r\n'), [413]],
  ['a length of forty digits', post(`Content-Length: ${'1'.repeat(40)}\r\n`), bad],
  ['a length of zeros', post('Content-Length: 00000000000000000000000000000000015\r\n'), ok],
  ['a length of one byte too many', post(`Content-Length: ${32 * 1024 * 1024 + 1}\r\n`), [413]],
  ['two lengths', post('Content-Length: 15\r\nContent-Length: 16\r\n'), bad],
  ['two equal lengths', post('Content-Length: 15\r\nContent-Length: 15\r\n'), bad],
  ['two lengths in other letters', post('Content-Length: 15\r\ncontent-length: 0\r\n'), bad],
  ['a length with a space before the colon', post('Content-Length : 15\r\n'), bad],
  ['a length and a length with an underscore', post('Content-Length: 15\r\nContent_Length: 3\r\n'), ok],
  ['a body for GET', get('Content-Length: 5\r\n') + 'hello', ok],
  ['a request in the body of GET', get(`Content-Length: ${hidden.length}\r\n`) + hidden, ok],
  ['a body for HEAD', head('HEAD /health HTTP/1.1', `${host}Content-Length: 5\r\n`) + 'hello', ok],
  ['a body that was not announced', post('', body), [400, 400]],
  ['a body that is longer than announced', post('Content-Length: 15\r\n', `${body}xx\r\n\r\n`), [200, 400]],
  ['POST without length and body', post('', ''), [400, 200]],
];

const encodings = [
  ['chunks', chunked(chunk + last), ok],
  ['chunks in other letters', post('transfer-encoding: CHUNKED\r\n', chunk + last), ok],
  ['chunks with blanks around', post('Transfer-Encoding:   chunked  \r\n', chunk + last), ok],
  ['chunks with tabs around', post('Transfer-Encoding:\tchunked\t\r\n', chunk + last), bad],
  ...['gzip', 'identity', 'deflate', 'gzip, chunked', 'chunked, gzip', 'chunked, identity', 'chunked, chunked',
    'identity, chunked', 'xchunked', 'chunkedx', 'chunked;q=1', '"chunked"', 'chunked,', ',chunked', ', ', 'chun ked',
    'chunked\u00a0', '', 'x'].map((value) => [
    `the encoding ${JSON.stringify(value)}`, post(`Transfer-Encoding: ${value}\r\n`, chunk + last), [501]]),
  ...[0, 1, 11, 12, 127].map((code) => [
    `the encoding chunked behind ${name(code)}`, post(`Transfer-Encoding: ${byte(code)}chunked\r\n`, chunk + last), bad]),
  ['two encodings', chunked(chunk + last, 'Transfer-Encoding: chunked\r\n'), [501]],
  ['two encodings, the second unknown', chunked(chunk + last, 'Transfer-Encoding: identity\r\n'), [501]],
  ['two encodings, the first unknown', post('Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n', chunk + last),
    [501]],
  ['an encoding with a space before the colon', post('Transfer-Encoding : chunked\r\n', chunk + last), bad],
  ['an encoding with an underscore is none', post('Transfer_Encoding: chunked\r\n', chunk + last), [400, 400]],
  ['an encoding behind a line feed', post('X: x\nTransfer-Encoding: chunked\r\n', chunk + last), bad],
  ['an encoding in HTTP/1.0', head('POST /tokenize HTTP/1.0', 'Transfer-Encoding: chunked\r\n') + chunk + last, [501]],
  ['a bare line feed behind the last chunk', chunked(`${chunk}0\r\n\n`), bad],
  ['a compressed body', post(`Content-Encoding: gzip\r\nContent-Length: ${body.length}\r\n`), [415]],
  ['a body that says it is not compressed', post(`Content-Encoding: identity\r\nContent-Length: ${body.length}\r\n`), ok],
  ['CL.TE', post('Content-Length: 6\r\nTransfer-Encoding: chunked\r\n', `0\r\n\r\nG`), bad],
  ['TE.CL', post('Transfer-Encoding: chunked\r\nContent-Length: 4\r\n', `5c\r\n${hidden}\r\n0\r\n\r\n`), bad],
  ['TE.TE with a space', post('Transfer-Encoding: chunked\r\nTransfer-encoding: x\r\n', last + hidden), [501]],
  ['TE.CL with a tab', post('Transfer-Encoding:\tchunked\r\nContent-Length: 4\r\n', last), bad],
  ['CL.TE with a length of zero', post('Content-Length: 0\r\nTransfer-Encoding: chunked\r\n', last + hidden), bad],
  ['TE.0', head('OPTIONS /tokenize HTTP/1.1', `${host}Transfer-Encoding: chunked\r\n`) + `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`,
    [413]],
  ['CL.0', head('POST /health HTTP/1.1', `${host}Content-Length: ${hidden.length}\r\n`) + hidden, [405]],
  ['chunks for GET', get('Transfer-Encoding: chunked\r\n') + `5\r\nhello\r\n${last}`, ok],
];

const chunks = [
  ['many chunks', chunked(`${times(body.length, (i) => `1\r\n${body[i]}\r\n`)}${last}`), ok],
  ['a size in capitals', chunked(`${hex.toUpperCase()}\r\n${body}\r\n${last}`), ok],
  ['a size with zeros before', chunked(`000${hex}\r\n${body}\r\n${last}`), ok],
  ['a last chunk of zeros', chunked(`${chunk}0000\r\n\r\n`), ok],
  ['an extension', chunked(`${hex};x\r\n${body}\r\n${last}`), ok],
  ['an extension with a value', chunked(`${hex};x=y\r\n${body}\r\n${last}`), ok],
  ['an extension with a quoted value', chunked(`${hex};x="a;b"\r\n${body}\r\n${last}`), ok],
  ['an extension of the last chunk', chunked(`${chunk}0;x=y\r\n\r\n`), ok],
  ['a trailer', chunked(`${chunk}0\r\nX: y\r\n\r\n`), ok],
  ['a trailer that is a length', chunked(`${chunk}0\r\nContent-Length: 99\r\n\r\n`), [200, 200]],
  ['a trailer that is an encoding', chunked(`${chunk}0\r\nTransfer-Encoding: gzip\r\n\r\n`), bad],
  ['a trailer that is a host', chunked(`${chunk}0\r\nHost: elsewhere\r\n\r\n`), [200, 200]],
  ...['', ' ', ` ${hex}`, `${hex} `, `0x${hex}`, `-${hex}`, `+${hex}`, 'g', 'xyz', '1.0', `${hex},`, `${hex}\u0000`,
    `\t${hex}`, `${hex}\t`, '"f"', 'f_f', '\u00b2'].map((size) => [
    `the chunk size ${JSON.stringify(size)}`, chunked(`${size}\r\n${body}\r\n${last}`), bad]),
  ['a chunk size of 2^64', chunked(`10000000000000000\r\n${body}\r\n${last}`), bad],
  ['a chunk size of 2^64 + 15', chunked(`1000000000000000f\r\n${body}\r\n${last}`), bad],
  ['a chunk size of forty digits', chunked(`${'1'.repeat(40)}\r\n${body}\r\n${last}`), bad],
  ['a size line that ends in a line feed', chunked(`${hex}\n${body}\r\n${last}`), bad],
  ['a size line that ends in a carriage return', chunked(`${hex}\r${body}\r\n${last}`), bad],
  ['a size line with two carriage returns', chunked(`${hex}\r\r\n${body}\r\n${last}`), bad],
  ['a chunk that ends in a line feed', chunked(`${hex}\r\n${body}\n${last}`), bad],
  ['a chunk that ends in nothing', chunked(`${hex}\r\n${body}${last}`), bad],
  ['a chunk that is longer than its size', chunked(`2\r\n${body}\r\n${last}`), bad],
  ['a chunk with other bytes behind', chunked(`${hex}\r\n${body}XX${last}`), bad],
  ['a last chunk that ends in line feeds', chunked(`${chunk}0\n\n`), bad],
  ['an extension with a line feed', chunked(`${hex};x\n${body}\r\n${last}`), bad],
  ['an extension with a carriage return', chunked(`${hex};x\ry\r\n${body}\r\n${last}`), bad],
  ['an extension with 0x00', chunked(`${hex};x=\u0000\r\n${body}\r\n${last}`), bad],
  ['an extension without end', chunked(`${hex};${'x'.repeat(20_000)}\r\n${body}\r\n${last}`), [431]],
  ['a trailer without end', chunked(`${chunk}0\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`), [431]],
  ['trailers without end', chunked(`${chunk}0\r\n${times(2000, (i) => `X-${i}: y\r\n`)}\r\n`), [431]],
  ['a size with zeros without end', chunked(`${'0'.repeat(20_000)}${hex}\r\n${body}\r\n${last}`), [431]],
  ['a trailer with a bad name', chunked(`${chunk}0\r\nX Y: z\r\n\r\n`), bad],
  ['a trailer with 0x00', chunked(`${chunk}0\r\nX: \u0000\r\n\r\n`), bad],
  ['a trailer that folds, which like all trailers is not read', chunked(`${chunk}0\r\nX: y\r\n z\r\n\r\n`), ok],
  ['a trailer with a line feed', chunked(`${chunk}0\r\nX: y\n\r\n`), bad],
  ['a request behind the last chunk', chunked(`${chunk}${last}${hidden}`), [200, 404, 200]],
];

const connections = [
  ['Connection: close', get('Connection: close\r\n'), [200]],
  ['Connection: Close', get('Connection: CLOSE\r\n'), [200]],
  ['close among others', get('Connection: x, close , y\r\n'), [200]],
  ['close and keep-alive', get('Connection: keep-alive, close\r\n'), [200]],
  ['two of them', get('Connection: keep-alive\r\nConnection: close\r\n'), [200]],
  ['keep-alive', get('Connection: keep-alive\r\n'), ok],
  ['an absurd keep-alive', get('Keep-Alive: timeout=999999999999, max=-1\r\nConnection: keep-alive\r\n'), ok],
  ['Connection: content-length', post('Connection: content-length\r\nContent-Length: 15\r\n'), ok],
  ['HTTP/1.0', head('GET /health HTTP/1.0'), [200]],
  ['HTTP/1.0 with keep-alive', head('GET /health HTTP/1.0', `${host}Connection: keep-alive\r\n`), ok],
  ['an upgrade to a web socket', get('Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n'), ok],
  ['an upgrade to HTTP/2', get('Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'), ok],
  ['an upgrade with a body', post('Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 15\r\n'), ok],
  ['an upgrade to TLS', head('OPTIONS /health HTTP/1.1', `${host}Upgrade: TLS/1.2\r\nConnection: Upgrade\r\n`), [204, 200]],
  ['two requests', get() + get(), [200, 200, 200]],
  ['a hundred requests', times(100, () => get()), Array(101).fill(200)],
  ['HEAD, then GET', head('HEAD /health HTTP/1.1') + get(), [200, 200, 200]],
  ['HEAD of nothing, then GET', head('HEAD /nothing HTTP/1.1') + get(), [404, 200, 200]],
  ['a body, then GET', post('Content-Length: 15\r\n') + get(), [200, 200, 200]],
  ['chunks, then GET', chunked(chunk + last) + get(), [200, 200, 200]],
  ['GET, then nonsense, then GET', `${get()}nonsense\r\n\r\n${get()}`, [200, 400]],
  ['GET that closes, then GET', get('Connection: close\r\n') + get(), [200]],
  ['a blank line between requests', `${get()}\r\n${get()}`, [200, 200, 200]],
  ['a query for each of many parameters', get('', `/health?${times(1000, (i) => `a${i}&`)}`), ok],
];

const expectations = [
  ['Expect: 100-continue', post('Expect: 100-continue\r\nContent-Length: 15\r\n'), ok],
  ['Expect in other letters', post('expect: 100-CONTINUE\r\nContent-Length: 15\r\n'), ok],
  ['Expect without a body', get('Expect: 100-continue\r\n'), ok],
  ['Expect with too large a body', post(`Expect: 100-continue\r\nContent-Length: ${1 << 30}\r\n`, ''), [413]],
  ['Expect of a route that is not there',
    head('POST /nothing HTTP/1.1', `${host}Expect: 100-continue\r\nContent-Length: 15\r\n`), [404]],
  ['Expect in HTTP/1.0 is not heard',
    head('POST /tokenize HTTP/1.0', 'Expect: 100-continue\r\nContent-Length: 15\r\n') + body, [200]],
  ...['200-ok', '100-continue, x', 'x', '', '100'].map((value) => [
    `Expect: ${value}`, post(`Expect: ${value}\r\nContent-Length: 15\r\n`), [417]]),
];

const sizes = [
  ['100 headers', head('GET /health HTTP/1.1', host + times(99, (i) => `X-${i}: y\r\n`)), ok],
  ['101 headers', head('GET /health HTTP/1.1', host + times(100, (i) => `X-${i}: y\r\n`)), [431]],
  ['10,000 headers', head('GET /health HTTP/1.1', host + times(10_000, (i) => `X-${i}: y\r\n`)), [431]],
  ['16,000 bytes in one header', get(`X: ${'x'.repeat(16_000)}\r\n`), ok],
  ['17,000 bytes in one header', get(`X: ${'x'.repeat(17_000)}\r\n`), [431]],
  ['a name of 17,000 bytes', get(`${'X'.repeat(17_000)}: x\r\n`), [431]],
  ['17,000 blanks', get(`X:${' '.repeat(17_000)}\r\n`), [431]],
  ['a method without end', 'G'.repeat(20_000), [414]],
  ['a target without end', `GET /${'x'.repeat(20_000)}`, [414]],
  ['a header without end', `GET /health HTTP/1.1\r\nX: ${'x'.repeat(20_000)}`, [431]],
  ['a megabyte of line ends', '\r\n'.repeat(500_000), bad],
  ['a megabyte of spaces', ' '.repeat(1_000_000), [414]],
  ['a megabyte of 0x00', '\u0000'.repeat(1_000_000), bad],
];

const strangers = [
  ['TLS', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003', bad],
  ['SSH', 'SSH-2.0-OpenSSH_9.2\r\n', bad],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [505]],
  ['the proxy protocol', `PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n${get()}`, bad],
  ['the binary proxy protocol', `\r\n\r\n\u0000\r\nQUIT\n\u0021\u0011\u0000\u000c${get()}`, bad],
  ['SMTP', 'EHLO localhost\r\n', bad],
  ['Redis', '*1\r\n$4\r\nPING\r\n', bad],
  ['memcached', 'stats\r\n', bad],
  ['FastCGI', '\u0001\u0001\u0000\u0001\u0000\u0008\u0000\u0000\u0000\u0001\u0000\u0000', bad],
  ['a frame of ours', '\u0002\u0000\u0000\u0000{}', bad],
  ['JSON', '{"prompt": "hello"}\r\n', bad],
  ['an answer instead of a question', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', bad],
];

const alone = [
  ['a whole request and the end', get(), [200]],
  ['a request with a body and the end', post('Content-Length: 15\r\n'), [200]],
  ['nothing', '', []],
  ['a line end', '\r\n', []],
  ['half a method', 'GE', []],
  ['half a request line', 'GET /hea', []],
  ['half a head', 'GET /health HTTP/1.1\r\nHo', []],
  ['a head without its end', 'GET /health HTTP/1.1\r\nHost: localhost\r\n', []],
  ['half a body', post('Content-Length: 15\r\n', '{"cont'), []],
  ['a body of which nothing comes', post('Content-Length: 15\r\n', ''), []],
  ['half a chunk size', chunked('f'), []],
  ['half a chunk', chunked(`${hex}\r\n{"con`), []],
  ['chunks without the last one', chunked(chunk), []],
  ['a last chunk without its end', chunked(`${chunk}0\r\n`), []],
  ['half a trailer', chunked(`${chunk}0\r\nX: y\r\n`), []],
  ['one request and half of another', get() + get().slice(0, 30), [200]],
];

export const groups = {
  methods, targets, versions, lines, hosts, lengths, encodings, chunks, connections, expectations, sizes, strangers,
};
export { alone };
