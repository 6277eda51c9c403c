// A real Chromium for the tests. A page that logs an error, loses an exception or breaks the content policy fails its
// test, and so does one that asks anybody but its own server.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import puppeteer from 'puppeteer-core';

import { hangAfter } from '../../tests/e2e/server.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const found = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
export const chromium = found.find((file) => file && existsSync(file));
export const screenshots = path.join(here, '../../build/screenshots');

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// No sandbox: tests run as root in containers, and the browser sees nothing but our own server.
const flags = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--force-color-profile=srgb'];

export async function openBrowser(context, more = []) {
  assert.ok(chromium, 'no Chromium: apt-get install chromium, or set CHROMIUM to one');
  // Waits have an end of their own, which says what they waited for: this one is for a browser that hangs.
  const protocolTimeout = 5 * hangAfter;
  const browser = await puppeteer.launch({ executablePath: chromium, args: [...flags, ...more], protocolTimeout });
  context.after(() => browser.close());
  return browser;
}

export const wide = { width: 1440, height: 900 };
export const small = { width: 390, height: 800 };

export class Tab {
  // Each has storage of its own, but for one that opens `beside` another.
  static async open(t, browser, server, { viewport = wide, expectedFaults = [], path: address = '/', beside = null } = {}) {
    const profile = beside?.page.browserContext() ?? await browser.createBrowserContext();
    const page = await profile.newPage();
    const tab = new Tab(page, server, expectedFaults);
    t.after(async () => {
      if (!beside) await profile.close();
      assert.deepEqual(tab.faults, [], 'the page had faults');
    });
    await page.setViewport(viewport);
    // Toasts stay, see dom.js: on a busy machine a test may need longer than 8 s to come to the button in one.
    await page.evaluateOnNewDocument(() => {
      const real = window.setTimeout;
      window.setTimeout = (run, ms, ...values) =>
        (ms === 8000 && /replaceChildren/.test(run) ? undefined : real(run, ms, ...values));
    });
    await page.goto(server.url + address);
    await page.waitForSelector('body.ready');
    return tab;
  }

  constructor(page, server, expectedFaults) {
    this.page = page;
    this.faults = [];
    const note = (fault) => {
      // The page asks on until its tab is closed, which may be later than its server.
      if (server.stopping && fault.includes('net::ERR_')) return;
      if (!expectedFaults.some((pattern) => pattern.test(fault))) this.faults.push(fault);
    };
    page.setDefaultTimeout(hangAfter);
    page.on('pageerror', (error) => note(`exception: ${error.stack}`));
    page.on('console', (line) => {
      if (line.type() === 'error' || line.type() === 'warn') note(`console: ${line.text()} ${line.location().url ?? ''}`);
    });
    page.on('request', (request) => {
      const own = request.url().startsWith(server.url) || request.url().startsWith('data:');
      if (!own) note(`asked another server: ${request.url()}`);
    });
  }

  async reload() {
    await this.page.reload();
    await this.page.waitForSelector('body.ready');
  }

  // What the page has begun to write is on the disk: a transaction waits for those before it.
  async written() {
    await this.page.evaluate(() => new Promise((done) => {
      indexedDB.open('chasqui').onsuccess = ({ target: { result } }) => {
        const store = result.transaction('conversations', 'readwrite').objectStore('conversations');
        store.count().onsuccess = () => done();
      };
    }));
  }

  async send(text) {
    await this.page.type('#prompt', text);
    await this.page.keyboard.press('Enter');
  }

  // The last answer has ended.
  async ended() {
    await this.page.waitForSelector('.message.assistant:last-child:not(.streaming)');
  }

  async ask(text) {
    await this.send(text);
    await this.ended();
  }

  texts(selector) {
    return this.page.$$eval(selector, (list) => list.map((element) => element.innerText.trim()));
  }

  text(selector) {
    return this.page.$eval(selector, (element) => element.innerText.trim());
  }

  messages() {
    return this.texts('.message .text');
  }

  // A condition over the page, as a function that runs in it.
  until(condition, ...values) {
    return this.page.waitForFunction(condition, { polling: 'mutation' }, ...values);
  }

  // Fields of the settings dialog, by name.
  async settle(fields) {
    await this.page.click('#open-settings');
    for (const [name, value] of Object.entries(fields)) {
      await this.page.$eval(`#set-${name}`, (input, text) => {
        input.value = text;
        input.dispatchEvent(new Event('input', { bubbles: true }));
      }, value);
    }
    await this.page.click('#settings button[type=submit]');
    await this.until(() => !document.querySelector('#settings').open);
  }

  // What axe finds wrong with what is shown. Evaluated by the debugger, which the content policy does not bind.
  async axeFaults() {
    await this.page.evaluate(axe);
    const { violations, passes } = await this.page.evaluate(() =>
      window.axe.run(document, { resultTypes: ['violations'] }));
    assert.ok(passes.length > 10, 'axe has looked');
    return violations.map(({ id, help, nodes }) =>
      `${id}: ${help}\n${nodes.map((node) => `  ${node.html}\n  ${node.failureSummary}`).join('\n')}`);
  }

  async shoot(name) {
    mkdirSync(screenshots, { recursive: true });
    await this.page.screenshot({ path: path.join(screenshots, `${name}.png`) });
  }

  // In both colours: a screenshot, and axe finds nothing; and the page is not wider than the screen.
  async check(name) {
    for (const colours of ['light', 'dark']) {
      await this.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: colours },
        { name: 'prefers-reduced-motion', value: 'reduce' }]);
      await this.frames(2);
      await this.shoot(`${name}-${colours}`);
      assert.deepEqual(await this.axeFaults(), [], `${name} in ${colours}`);
    }
    const [width, screen] = await this.page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    assert.ok(width <= screen, `${name} is ${width} wide on a screen of ${screen}`);
  }

  // Four are long enough for an observer to say what has come near, and for what it makes to be laid out.
  async frames(count = 4) {
    await this.page.evaluate(async (n) => {
      for (let i = 0; i < n; ++i) await new Promise((done) => { requestAnimationFrame(done); });
    }, count);
  }

  // Puts a conversation into the store; the page sees it when it is loaded anew.
  async store(conversation) {
    await this.page.evaluate((one) => new Promise((done, fail) => {
      const request = indexedDB.open('chasqui');
      request.onsuccess = () => {
        const change = request.result.transaction('conversations', 'readwrite');
        change.objectStore('conversations').put(one);
        change.oncomplete = done;
        change.onerror = fail;
      };
    }), conversation);
  }

  // Keeps what the page hands to the browser as files from now on; keptFiles() gives their texts.
  async keepFiles() {
    await this.page.evaluate(() => {
      window.files = [];
      const make = URL.createObjectURL;
      URL.createObjectURL = (blob) => { window.files.push(blob); return make.call(URL, blob); };
    });
  }

  async keptFiles() {
    return this.page.evaluate(() => Promise.all(window.files.map((file) => file.text())));
  }

  // Answers the page's next requests to `route` itself, for what a small model does not say. Each answer is a body of
  // events, or { status, body, headers }. The bodies of the requests are returned as they come.
  async answerWith(route, answers) {
    const asked = [];
    await this.page.setRequestInterception(true);
    this.page.on('request', (request) => {
      if (new URL(request.url()).pathname !== route || answers.length === 0) return request.continue();
      asked.push(JSON.parse(request.postData()));
      const answer = answers.shift();
      if (answer === 'server') return request.continue();
      if (typeof answer === 'string') return request.respond({ status: 200, contentType: 'text/event-stream', body: answer });
      return request.respond({ contentType: 'application/json', ...answer });
    });
    return asked;
  }
}

// A stream as the server writes it, of deltas.
export function eventsOf(deltas, finish = 'stop') {
  const chunk = (fields) => `data: ${JSON.stringify({ object: 'chat.completion.chunk', ...fields })}\n\n`;
  const usage = { prompt_tokens: 20, completion_tokens: deltas.length, total_tokens: 20 + deltas.length,
    prompt_tokens_details: { cached_tokens: 12 } };
  return deltas.map((delta) => chunk({ choices: [{ index: 0, delta, finish_reason: null }] })).join('') +
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: finish }], timings: { predicted_per_second: 42, queue_ms: 3 } }) +
    chunk({ choices: [], usage }) + 'data: [DONE]\n\n';
}

export const endless = JSON.stringify({ ignore_eos: true, max_tokens: 1_000_000 });
