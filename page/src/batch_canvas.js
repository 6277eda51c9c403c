// Draws the charts: one column a step, the newest on the right, four charts above each other with the same columns.
import { classes } from './steps.js';

const column = 7;
const gap = 2;
const left = 44;
const right = 10;
const titleHeight = 20;
const space = 12;

// Shares of the height.
const charts = [
  { title: 'Streams: one token each', share: 0.2, rows: (step) => step.decode },
  { title: 'Prompt rows read', share: 0.24, rows: (step) => step.prompt, root: true },
  { title: 'How long streams wait for a token (ms)', share: 0.4 },
  { title: 'Requests in the queue', share: 0.16, rows: (step) => step.waiting },
];

function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 1.5, 2, 3, 4, 5, 7.5, 10].map((factor) => factor * power).find((candidate) => candidate >= value);
}

export class BatchCanvas {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext('2d');
    this.shown = [];
  }

  colours() {
    const style = getComputedStyle(this.canvas);
    const of = (name) => style.getPropertyValue(name).trim();
    return {
      text: of('--text'), muted: of('--muted'), line: of('--line'), target: of('--target'), late: of('--late'),
      decode: of('--decode'), prefill: of('--prefill'), waited: of('--waited'), font: of('--font') || 'sans-serif',
      classes: classes.map((name) => of(`--${name}`)),
    };
  }

  stepAt(x) {
    return this.shown[Math.floor((x - this.start) / column)] ?? null;
  }

  draw(steps, promise, selected) {
    const { canvas, pen } = this;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    const scale = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.ink = this.colours();
    const fits = Math.max(1, Math.floor((width - left - right) / column));
    this.shown = steps.slice(-fits);
    this.start = width - right - this.shown.length * column;
    const free = height - charts.length * (titleHeight + space);
    let y = 0;
    const at = this.shown.findIndex((step) => step.n === selected);
    if (at >= 0) {
      pen.fillStyle = this.ink.line;
      pen.fillRect(this.start + at * column - 1, 0, column, height);
    }
    for (const chart of charts) {
      const area = { top: y + titleHeight, height: free * chart.share, width };
      pen.fillStyle = this.ink.muted;
      pen.font = `600 11.5px ${this.ink.font}`;
      pen.textAlign = 'left';
      pen.textBaseline = 'alphabetic';
      pen.fillText(chart.title, left, y + 13);
      if (chart.rows) this.drawRows(chart, area, promise);
      else this.drawTime(area, promise);
      y += titleHeight + area.height + space;
    }
  }

  axis(area, most, place, ticks) {
    const { pen } = this;
    pen.font = `11px ${this.ink.font}`;
    pen.textAlign = 'right';
    pen.textBaseline = 'middle';
    for (const tick of ticks) {
      const y = Math.round(area.top + area.height - place(tick) * area.height) + 0.5;
      pen.fillStyle = this.ink.muted;
      pen.fillText(String(tick), left - 8, Math.min(y, area.top + area.height - 4));
      pen.strokeStyle = this.ink.line;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(left, y);
      pen.lineTo(area.width - right, y);
      pen.stroke();
    }
  }

  drawRows(chart, area, promise) {
    const { pen } = this;
    const totals = this.shown.map((step) => chart.rows(step).reduce((a, b) => a + b, 0));
    const floor = chart.root ? 64 : chart.rows({ decode: [1], waiting: [0], prompt: [0] })[0] ? Math.min(8, promise?.slots ?? 4) : 4;
    const most = niceCeiling(Math.max(floor, ...totals));
    const place = chart.root ? (value) => Math.sqrt(value / most) : (value) => value / most;
    this.axis(area, most, place, chart.root ? [0, most / 4, most].map(Math.round) : [0, most]);
    this.shown.forEach((step, i) => {
      let below = 0;
      chart.rows(step).forEach((rows, c) => {
        if (rows === 0) return;
        const from = place(below) * area.height;
        const to = place(below + rows) * area.height;
        pen.fillStyle = this.ink.classes[c];
        pen.fillRect(this.start + i * column, area.top + area.height - to, column - gap, Math.max(1, to - from));
        below += rows;
      });
    });
  }

  // A step begins where the wait of the streams stands and ends where it has brought it: a decode step ends the wait.
  drawTime(area, promise) {
    const { pen } = this;
    const tops = this.shown.map((step) => step.waited + step.ms);
    const targets = this.shown.map((step) => step.target).filter((target) => target);
    const typical = targets.length > 0 ? Math.max(...targets) : promise?.targets.interactive.next_token_ms ?? 100;
    const most = niceCeiling(Math.min(Math.max(typical * 1.25, ...tops), typical * 6));
    const place = (value) => Math.min(value, most) / most;
    this.axis(area, most, place, [0, Math.round(most / 2), most]);
    const yOf = (value) => area.top + area.height - place(value) * area.height;
    this.shown.forEach((step, i) => {
      const x = this.start + i * column;
      const top = yOf(step.waited + step.ms);
      const late = step.gap != null && step.target && step.gap > step.target;
      if (step.waited > 0) {
        pen.fillStyle = this.ink.waited;
        pen.fillRect(x, yOf(step.waited), column - gap, area.top + area.height - yOf(step.waited));
      }
      pen.fillStyle = late ? this.ink.late : step.kind === 'decode' ? this.ink.decode : this.ink.prefill;
      pen.fillRect(x, top, column - gap, Math.max(1.5, yOf(step.waited) - top));
      if (step.predicted_ms > 0) {
        pen.fillStyle = this.ink.text;
        pen.fillRect(x - 1, yOf(step.waited + step.predicted_ms) - 0.75, column, 1.5);
      }
    });
    pen.strokeStyle = this.ink.target;
    pen.lineWidth = 2;
    pen.setLineDash([5, 4]);
    pen.beginPath();
    this.shown.forEach((step, i) => {
      if (!step.target) return;
      const y = Math.round(yOf(step.target)); // whole pixels, else its colour fades wherever the scale puts it between them
      pen.moveTo(this.start + i * column - 1, y);
      pen.lineTo(this.start + (i + 1) * column - 1, y);
    });
    pen.stroke();
    pen.setLineDash([]);
  }
}
