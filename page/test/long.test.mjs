// A conversation of many rich messages: what is not near the view costs little, and scrolling does not show it.
import assert from 'node:assert/strict';
import test from 'node:test';

import { sim, start } from '../../tests/e2e/server.mjs';
import { Tab, eventsOf, openBrowser, small, wide } from './browser.mjs';
import { conversationOf, talk } from './conversations.mjs';

const browser = await openBrowser(test);

const richAnswer = (i) => `## Part ${i}

The wait is $t_{${i}} = \\frac{c}{${i + 1}}$, with a **word${i}word** of its own and \`code\`.

| step | rows | time |
|---|---|---|
${Array.from({ length: 5 }, (_, row) => `| ${row} | $r_{${row}}$ | ${i + row} ms |`).join('\n')}

\`\`\`cpp
${Array.from({ length: 12 }, (_, row) => `for (const Event& event : events_${row}) outbox.push(event, ${i}, "text");`).join('\n')}
\`\`\`

$$
\\sum_{k=0}^{${i}} \\sqrt{c_k^2 + r_k^2}
$$

1. One
2. Two
`;

const rich = (count) => conversationOf(`${count} messages`,
  Array.from({ length: count / 2 }, (_, i) => [`Question ${2 * i}?`, richAnswer(2 * i + 1)]));

// A tab whose store holds one conversation of `count` messages, and what opening it cost the page's thread.
async function openLong(t, server, count, { viewport = wide, before = () => {} } = {}) {
  const tab = await Tab.open(t, browser, server, { viewport });
  await tab.store(rich(count));
  const session = await tab.page.createCDPSession();
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const onCore = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration').value * 1000;
  };
  await before(tab.page);
  await tab.page.goto(`${server.url}/health`); // of the same server, so that Chromium keeps the process
  const begun = await onCore();
  await tab.page.goto(server.url);
  await tab.page.waitForSelector('body.ready');
  await tab.frames();
  return { tab, cost: await onCore() - begun };
}

const made = (tab) => tab.page.$$eval('.message:not(.later)', (list) => list.length);
const fromEnd = (tab) => tab.page.$eval('#log', (log) => Math.round(log.scrollHeight - log.scrollTop - log.clientHeight));
// Messages in view that are not made.
const bare = (tab) => tab.page.evaluate(() => {
  const { top, bottom } = document.querySelector('#log').getBoundingClientRect();
  return [...document.querySelectorAll('.message.later')].map((one) => one.getBoundingClientRect())
    .filter((box) => box.bottom > top && box.top < bottom).length;
});

test('ten times as many messages cost little more to open, since only those near the view are made', async (t) => {
  const server = await start(t, sim);
  const few = await openLong(t, server, 40);
  const many = await openLong(t, server, 400);
  t.diagnostic(`40 messages: ${few.cost.toFixed(0)} ms on a core, 400: ${many.cost.toFixed(0)} ms`);
  assert.equal((await many.tab.page.$$('.message')).length, 400);
  assert.equal(await made(many.tab), await made(few.tab));
  assert.ok(await made(many.tab) < 30, `${await made(many.tab)} are made`);
  assert.ok(many.cost < 4 * few.cost, `${many.cost} ms, where 40 took ${few.cost}`);
  assert.ok(many.cost <= 500, `${many.cost} ms of scripts and layout`);
  assert.equal(await fromEnd(many.tab), 0);
  assert.equal(await bare(many.tab), 0);
});

const ways = {
  'as browsers do it': () => {},
  // Safari, for one, does not hold what is seen where it is.
  'where the page does it itself': (page) => page.evaluateOnNewDocument(() => {
    const { supports } = CSS;
    CSS.supports = (...asked) => asked[0] !== 'overflow-anchor' && supports.apply(CSS, asked);
    addEventListener('DOMContentLoaded', () => {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync('#log { overflow-anchor: none; }');
      document.adoptedStyleSheets = [sheet];
    });
  }),
};
for (const [how, before] of Object.entries(ways)) {
  for (const [size, viewport] of Object.entries({ wide, small })) {
    test(`${size}: scrolling up moves what is seen by as much, ${how}`, async (t) => {
      const server = await start(t, sim);
      const { tab } = await openLong(t, server, 100, { viewport, before });
      const jumps = await tab.page.evaluate(async () => {
        const log = document.querySelector('#log');
        const shown = () => [...document.querySelectorAll('.message')].find((one) => one.getBoundingClientRect().top > 200);
        const out = [];
        for (let step = 0; step < 40; ++step) {
          const one = shown() ?? document.querySelector('.message:last-child');
          const from = one.getBoundingClientRect().top;
          log.scrollBy(0, -250);
          for (let i = 0; i < 4; ++i) await new Promise((done) => { requestAnimationFrame(done); });
          const moved = one.getBoundingClientRect().top - from;
          if (Math.abs(moved - 250) > 2) out.push(`step ${step}: ${moved}`);
        }
        return out;
      });
      assert.deepEqual(jumps, []);
      assert.equal(await bare(tab), 0);
    });
  }
}

// Its pictures are those of docs/page.md.
for (const [size, viewport] of Object.entries({ wide, small })) {
  test(`${size}: 50 messages with tables, formulas and code fit the screen, and axe finds nothing in them`, async (t) => {
    const server = await start(t, sim);
    const tab = await Tab.open(t, browser, server, { viewport });
    await tab.store(talk(25));
    await tab.page.goto(server.url);
    await tab.page.waitForSelector('body.ready');
    assert.equal((await tab.page.$$('.message')).length, 50);
    const tooWide = [];
    for (let at = 0; at < 50; ++at) {
      await tab.page.$eval(`[data-id=node-${at}]`, (message) => message.scrollIntoView({ block: 'start' }));
      await tab.page.waitForSelector(`[data-id=node-${at}]:not(.later)`);
      await tab.frames(2);
      tooWide.push(...await tab.page.$eval(`[data-id=node-${at}]`, (message) => {
        const log = document.querySelector('#log');
        const { left, right } = log.getBoundingClientRect();
        // What scrolls by itself may hold what is wider.
        const out = [message, ...message.querySelectorAll('.text > *, .table, .code, pre, .formula, .row')].filter((part) => {
          const box = part.getBoundingClientRect();
          return box.width > 0 && (box.left < left - 1 || box.right > right + 1);
        });
        return [...out.map((part) => `${message.dataset.id} ${part.outerHTML.slice(0, 80)}`),
          ...(log.scrollWidth > log.clientWidth ? [`${message.dataset.id}: ${log.scrollWidth} of ${log.clientWidth}`] : [])];
      }));
    }
    assert.deepEqual(tooWide, []);
    const scrolled = await tab.page.evaluate(() => [document.scrollingElement.scrollTop,
      document.scrollingElement.scrollHeight - innerHeight]);
    assert.deepEqual(scrolled, [0, 0], 'only the messages scroll');
    for (const part of ['table', 'math', 'pre code']) assert.ok((await tab.page.$$(`.message ${part}`)).length >= 10, part);
    await tab.page.$eval(`[data-id=node-${size === 'wide' ? 43 : 41}]`, (message) => message.scrollIntoView({ block: 'start' }));
    await tab.frames();
    await tab.check(`${size}-10-long`);
  });
}

test('the first and the last message are where the keys say, and a search finds what is not made yet', async (t) => {
  const server = await start(t, sim);
  const { tab } = await openLong(t, server, 400);
  const { page } = tab;
  await page.focus('#log');
  await page.$eval('#log', (log) => { log.scrollTop = 0; });
  await page.waitForSelector('.message:first-child:not(.later)');
  await tab.frames();
  assert.equal(await page.$eval('#log', (log) => log.scrollTop), 0);
  assert.equal(await bare(tab), 0);
  await page.click('#jump');
  await tab.frames();
  assert.equal(await fromEnd(tab), 0);
  assert.equal(await bare(tab), 0);
  // As the browser's own search does: it selects the words and brings them into view.
  assert.ok(await page.evaluate(() => window.find('word201word', false, false, true)));
  await page.evaluate(() => document.getSelection().anchorNode.parentElement.scrollIntoView({ block: 'center' }));
  await page.waitForSelector('[data-id=node-201]:not(.later)');
  await tab.frames();
  const { top, bottom } = await page.$eval('[data-id=node-201]', (one) => one.getBoundingClientRect().toJSON());
  assert.ok(bottom > 0 && top < wide.height, `it is in view: ${top} to ${bottom}`);
  assert.equal(await bare(tab), 0);
});

test('an answer that streams moves the view only when its end is seen', async (t) => {
  const server = await start(t, sim);
  const { tab } = await openLong(t, server, 100);
  await tab.answerWith('/v1/chat/completions', [eventsOf([{ content: richAnswer(1) }, { content: richAnswer(2) }]),
    eventsOf([{ content: richAnswer(3) }]), eventsOf([{ content: richAnswer(4) }])]);
  await tab.ask('Go on.');
  await tab.frames();
  assert.equal(await fromEnd(tab), 0, 'followed');
  const before = await made(tab);
  await tab.ask('And on.');
  assert.ok(await made(tab) <= before + 4, 'what was made stays, and nothing else is made for a new message');
  await tab.page.$eval('#log', (log) => { log.scrollTop = 2000; });
  await tab.frames();
  const place = () => tab.page.evaluate(() => [...document.querySelectorAll('.message')]
    .findIndex((one) => one.getBoundingClientRect().bottom > 60));
  const at = await place();
  await tab.page.$eval('.message:last-child [aria-label="Try again"]', (button) => button.click());
  await tab.ended();
  assert.notEqual(await place(), at, 'who asks again sees the answer');
});
