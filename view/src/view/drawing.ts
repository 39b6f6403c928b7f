// Draws a machine into a canvas, as pipeline/view laid it out: frames, cables coloured by load, items filled by what
// their ranks hold, messages on their way.
import { loadColour } from "../shared/colours";
import { linesOfItem } from "../shared/text";
import type { Palette, Theme } from "../shared/theme";
import type { Model } from "./model";

export interface Look {
  palette: Palette;
  theme: Theme;
  at: number; // time
  byRun: boolean; // loads of the whole run, not of this instant
  followed: { links: Set<number>; messages: Set<number> | null } | null;
  marked: Set<number> | null; // ranks on the critical path, where that is followed
  holders: Set<number> | null; // ranks that hold the followed chunk
  chosen: number; // the followed item; -1: none
  hover: Target | null;
}
export interface View {
  scale: number; // pixels per unit of the layout
  x: number; // pixel of the layout's corner
  y: number;
  width: number; // width of the canvas
  height: number;
}
export type Target = { kind: "item"; item: number } | { kind: "cable"; cable: number };

type Point = [number, number];

// One direction of a cable.
interface Lane {
  cable: number;
  links: number[];
  forward: boolean; // from item a to item b
  speed: number; // bandwidth, 1: that of the fastest link
  critical: boolean;
}

export class Drawing {
  private readonly lanes: Lane[] = [];
  private readonly laneOfLink: Int32Array; // -1: within an item
  private readonly hasBothWays: boolean[];
  private readonly points: Point[][]; // by cable
  private readonly lines: string[][]; // by item
  private readonly labelBelow: boolean[]; // by frame: its items leave more room at the bottom

  constructor(readonly model: Model) {
    const { cables } = model.data.drawing;
    const { links } = model.data.topology;
    this.laneOfLink = new Int32Array(model.numLinks).fill(-1);
    this.hasBothWays = [];
    this.points = [...cables.form].map((_, c) => {
      const list: Point[] = [];
      for (let i = cables.point_first[c]!; i < cables.point_first[c + 1]!; i += 2) list.push([cables.point[i]!, cables.point[i + 1]!]);
      return list;
    });
    this.lines = [...model.data.drawing.items.kind].map((_, item) => linesOfItem(model.data.topology, model.data.drawing, item, 12));
    this.labelBelow = this.findLabels();
    for (let cable = 0; cable < cables.form.length; cable++) {
      const all = cables.link.slice(cables.link_first[cable], cables.link_first[cable + 1]);
      const isForward = (link: number) => model.itemOfNode[links.from[link]!] === cables.a[cable];
      const sides = [all.filter(isForward), all.filter((link) => !isForward(link))];
      this.hasBothWays.push(sides.every((side) => side.length > 0));
      sides.forEach((side, i) => {
        if (side.length === 0) return;
        for (const link of side) this.laneOfLink[link] = this.lanes.length;
        const speed = side.reduce((sum, link) => sum + links.bandwidth[link]!, 0) / model.maxBandwidth;
        this.lanes.push({ cable, links: side, forward: i === 0, speed, critical: side.some((link) => model.criticalLinks.has(link)) });
      });
    }
  }

  private findLabels(): boolean[] {
    const { frames, items } = this.model.data.drawing;
    return frames.label.map((_, f) => {
      const left = frames.left[f]!, top = frames.top[f]!, right = left + frames.width[f]!, bottom = top + frames.height[f]!;
      let above = Infinity, below = Infinity;
      items.x.forEach((x, i) => {
        const y = items.y[i]!, half = items.height[i]! / 2;
        if (x < left || x > right || y < top || y > bottom) return;
        above = Math.min(above, y - half - top);
        below = Math.min(below, bottom - y - half);
      });
      return below > above + 1;
    });
  }

  linksOfCable(cable: number): number[][] {
    return this.lanes.filter((lane) => lane.cable === cable).map((lane) => lane.links);
  }

  draw(context: CanvasRenderingContext2D, view: View, look: Look) {
    context.save();
    this.drawFrames(context, view, look);
    this.drawCables(context, view, look);
    this.drawPackets(context, view, look);
    this.drawItems(context, view, look);
    context.restore();
  }

  private pixel(view: View, [x, y]: Point): Point {
    return [view.x + x * view.scale, view.y + y * view.scale];
  }

  private drawFrames(context: CanvasRenderingContext2D, view: View, look: Look) {
    const { frames } = this.model.data.drawing;
    context.lineWidth = 1;
    const size = Math.min(11, 15 * view.scale);
    context.font = `600 ${size}px system-ui, sans-serif`;
    context.textAlign = "left";
    frames.label.forEach((label, i) => {
      const [x, y] = this.pixel(view, [frames.left[i]!, frames.top[i]!]);
      const width = frames.width[i]! * view.scale, height = frames.height[i]! * view.scale;
      context.beginPath();
      context.roundRect(x, y, width, height, Math.min(8, 10 * view.scale));
      context.fillStyle = look.palette.panel;
      context.fill();
      context.strokeStyle = look.palette.line;
      context.stroke();
      if (size < 6.5) return;
      const shown = this.labelOf(context, label, width - 10, size);
      if (!shown) return;
      context.fillStyle = look.palette.soft;
      const pad = 4 * Math.min(1, view.scale);
      context.textBaseline = this.labelBelow[i] ? "bottom" : "top";
      context.fillText(label, x + 5, this.labelBelow[i] ? y + height - pad : y + pad);
    });
  }

  // Sets the font in which a label fits; false where it would be too small, and zooming shows it.
  private labelOf(context: CanvasRenderingContext2D, label: string, width: number, size: number): boolean {
    context.font = `600 ${size}px system-ui, sans-serif`;
    const fits = Math.min(size, (size * width) / Math.max(1, context.measureText(label).width));
    context.font = `600 ${fits}px system-ui, sans-serif`;
    return fits >= 6.5;
  }

  private loadOf(lane: Lane, look: Look): number {
    let sum = 0;
    for (const link of lane.links) sum += look.byRun ? this.model.loadTotal(link) : this.model.loadNow(link, look.at);
    return sum / lane.links.length;
  }

  // The two directions of a cable lie side by side where there is room; else the busier one lies on top.
  private drawCables(context: CanvasRenderingContext2D, view: View, look: Look) {
    const many = this.lanes.length > 1200;
    const shown = this.lanes.map((lane) => ({
      lane,
      load: this.loadOf(lane, look),
      dim: look.followed !== null && !lane.links.some((link) => look.followed!.links.has(link)),
    }));
    shown.sort((a, b) => Number(b.dim) - Number(a.dim) || a.load - b.load);
    context.lineCap = "butt";
    for (const { lane, load, dim } of shown) {
      const isHover = look.hover?.kind === "cable" && look.hover.cable === lane.cable;
      context.globalAlpha = dim ? 0.14 : load > 0.02 ? 1 : many ? 0.5 : 0.8;
      context.strokeStyle = loadColour(load, look.theme);
      context.lineWidth = dim ? 1 : this.laneWidth(view, lane) + (isHover ? 1.5 : 0);
      this.trace(context, view, lane);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  private laneWidth(view: View, lane: Lane): number {
    return Math.min(1 + 2 * Math.sqrt(lane.speed), 4.5) * Math.min(1.3, Math.max(0.4, view.scale));
  }
  // To the right of the way from a to b, in pixels.
  private shiftOf(view: View, lane: Lane): number {
    if (!this.hasBothWays[lane.cable] || view.scale < 0.35) return 0;
    return (lane.forward ? 1 : -1) * (this.laneWidth(view, lane) / 2 + Math.min(1.4, view.scale));
  }

  private trace(context: CanvasRenderingContext2D, view: View, lane: Lane) {
    const points = this.shifted(view, lane);
    const form = this.model.data.drawing.cables.form[lane.cable];
    context.beginPath();
    if (form === "s") {
      context.moveTo(...points[0]!);
      context.lineTo(...points[1]!);
      context.moveTo(...points[3]!);
      context.lineTo(...points[2]!);
    } else if (form === "c") {
      context.moveTo(...points[0]!);
      context.quadraticCurveTo(...points[1]!, ...points[2]!);
    } else {
      points.forEach((point, i) => (i === 0 ? context.moveTo(...point) : context.lineTo(...point)));
    }
  }

  // The points of a lane in pixels, from a to b.
  private shifted(view: View, lane: Lane): Point[] {
    const points = this.points[lane.cable]!.map((point) => this.pixel(view, point));
    const shift = this.shiftOf(view, lane);
    if (shift === 0) return points;
    return points.map((point, i) => {
      const before = points[Math.max(0, i - 1)]!, after = points[Math.min(points.length - 1, i + 1)]!;
      const length = Math.hypot(after[0] - before[0], after[1] - before[1]) || 1;
      return [point[0] - ((after[1] - before[1]) / length) * shift, point[1] + ((after[0] - before[0]) / length) * shift];
    });
  }

  // The place at share `along` of a link, on its lane.
  private place(view: View, lane: Lane, along: number): Point {
    const points = this.shifted(view, lane);
    const s = lane.forward ? along : 1 - along;
    const between = (a: Point, b: Point, t: number): Point => [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t];
    const form = this.model.data.drawing.cables.form[lane.cable];
    if (form === "c") return between(between(points[0]!, points[1]!, s), between(points[1]!, points[2]!, s), s);
    if (form === "s") return s < 0.5 ? between(points[0]!, points[1]!, 2 * s) : between(points[2]!, points[3]!, 2 * s - 1);
    const at = s * (points.length - 1), i = Math.min(Math.floor(at), points.length - 2);
    return between(points[i]!, points[i + 1]!, at - i);
  }

  // A dot for every message that is on a link, as far along it as it has been sent.
  private drawPackets(context: CanvasRenderingContext2D, view: View, look: Look) {
    const detail = this.model.played.detail;
    if (!detail || look.byRun) return;
    const { latency } = this.model.data.topology.links;
    const radius = Math.min(4, Math.max(1.3, 2.8 * view.scale));
    const { hopFirst, hopsOfLink, messageOfHop } = this.model;
    let drawn = 0;
    context.lineWidth = 1;
    context.strokeStyle = look.palette.paper;
    for (const link of this.model.usedLinks) {
      const lane = this.lanes[this.laneOfLink[link]!];
      if (!lane) continue;
      for (let i = hopFirst[link]!; i < hopFirst[link + 1]! && drawn < 3000; i++) {
        const hop = hopsOfLink[i]!;
        const start = detail.hop_start[hop]!;
        if (start > look.at) break;
        const end = detail.hop_end[hop]! + latency[link]!;
        if (end <= look.at) continue;
        const isFollowed = look.followed?.messages?.has(messageOfHop[hop]!) ?? false;
        const dim = look.followed?.messages != null && !isFollowed;
        const [x, y] = this.place(view, lane, (look.at - start) / (end - start));
        context.globalAlpha = dim ? 0.15 : 1;
        context.fillStyle = isFollowed ? look.palette.critical : look.palette.ink;
        context.beginPath();
        context.arc(x, y, isFollowed ? radius * 1.25 : radius, 0, 2 * Math.PI);
        context.fill();
        context.stroke();
        drawn++;
      }
    }
    context.globalAlpha = 1;
  }

  private drawItems(context: CanvasRenderingContext2D, view: View, look: Look) {
    const { items } = this.model.data.drawing;
    for (let item = 0; item < items.kind.length; item++) {
      const [x, y] = this.pixel(view, [items.x[item]!, items.y[item]!]);
      const width = Math.max(items.width[item]! * view.scale, 2), height = Math.max(items.height[item]! * view.scale, 2);
      if (x + width < 0 || y + height < 0 || x - width > view.width || y - height > view.height) continue;
      this.drawItem(context, item, { x: x - width / 2, y: y - height / 2, width, height }, view, look);
    }
  }

  private drawItem(context: CanvasRenderingContext2D, item: number, box: { x: number; y: number; width: number; height: number }, view: View, look: Look) {
    const { items } = this.model.data.drawing;
    const kind = items.kind[item]!;
    const ranks = this.model.ranksOfItem[item]!;
    const strong = (look.hover?.kind === "item" && look.hover.item === item) || look.chosen === item || (look.marked !== null && ranks.some((rank) => look.marked!.has(rank)));
    const corner = Math.min(kind === "s" ? box.height / 2 : kind === "n" ? box.height / 3 : 5 * view.scale, 12);
    context.beginPath();
    context.roundRect(box.x, box.y, box.width, box.height, corner);
    context.fillStyle = kind === "g" ? look.palette.raised : look.palette.panel;
    context.fill();
    const filled = this.filled(ranks, look);
    if (filled > 0) {
      context.save();
      context.clip();
      context.globalAlpha = look.holders ? 0.9 : 0.55;
      context.fillStyle = look.holders ? look.palette.critical : look.palette.accent;
      context.fillRect(box.x, box.y + box.height * (1 - filled), box.width, box.height * filled);
      context.restore();
    }
    context.lineWidth = strong ? 2.5 : 1;
    context.strokeStyle = strong ? look.palette.critical : look.palette["strong-line"];
    if (box.width >= 5 || strong) context.stroke();
    this.drawLines(context, this.lines[item]!, box, view, kind === "g", look);
  }

  // How full an item is drawn: the share of its final data that its ranks hold, or the share of its ranks that hold
  // the followed chunk.
  private filled(ranks: number[], look: Look): number {
    if (ranks.length === 0) return 0;
    let sum = 0;
    for (const rank of ranks) sum += look.holders ? Number(look.holders.has(rank)) : Math.max(0, this.model.holdings.ofRank(rank));
    return sum / ranks.length;
  }

  private drawLines(context: CanvasRenderingContext2D, lines: string[], box: { x: number; y: number; width: number; height: number }, view: View, bold: boolean, look: Look) {
    const font = (size: number) => `${bold ? "600 " : ""}${size}px system-ui, sans-serif`;
    let size = Math.min(13, Math.max(12 * view.scale, 9), (box.height - 2) / lines.length / 1.1);
    if (size < 6.5) return;
    context.font = font(size);
    // Smaller, where that makes a text fit.
    const longest = lines.reduce((most, line) => Math.max(most, context.measureText(line).width), 1);
    size *= Math.min(1, (box.width - 3) / longest);
    if (size < 6) return; // zooming shows it
    context.font = font(size);
    context.textAlign = "center";
    context.textBaseline = "middle";
    lines.forEach((line, i) => {
      const y = box.y + box.height / 2 + (i - (lines.length - 1) / 2) * size * 1.15 + 0.5;
      context.fillStyle = look.palette.ink;
      context.fillText(line, box.x + box.width / 2, y);
    });
  }

  // The item or cable at a pixel; null: neither.
  pick(view: View, x: number, y: number): Target | null {
    const { items } = this.model.data.drawing;
    for (let item = items.kind.length - 1; item >= 0; item--) {
      const [ix, iy] = this.pixel(view, [items.x[item]!, items.y[item]!]);
      const wide = Math.max((items.width[item]! * view.scale) / 2, 4), high = Math.max((items.height[item]! * view.scale) / 2, 4);
      if (Math.abs(x - ix) <= wide && Math.abs(y - iy) <= high) return { kind: "item", item };
    }
    let best = -1, least = 6;
    for (const lane of this.lanes) {
      const distance = this.distance(view, lane, x, y);
      if (distance < least) {
        least = distance;
        best = lane.cable;
      }
    }
    return best < 0 ? null : { kind: "cable", cable: best };
  }

  private distance(view: View, lane: Lane, x: number, y: number): number {
    const points = this.points[lane.cable]!.map((point) => this.pixel(view, point));
    const left = Math.min(...points.map((p) => p[0])), right = Math.max(...points.map((p) => p[0]));
    const top = Math.min(...points.map((p) => p[1])), bottom = Math.max(...points.map((p) => p[1]));
    if (x < left - 8 || x > right + 8 || y < top - 8 || y > bottom + 8) return Infinity;
    const form = this.model.data.drawing.cables.form[lane.cable];
    const steps = form === "l" ? 1 : 12;
    let least = Infinity;
    let [px, py] = this.place(view, lane, 0);
    for (let i = 1; i <= steps; i++) {
      const [qx, qy] = this.place(view, lane, i / steps);
      // A stubbed cable is not there in its middle.
      if (!(form === "s" && i === steps / 2 + 1)) least = Math.min(least, toSegment(x, y, px, py, qx, qy));
      [px, py] = [qx, qy];
    }
    return least;
  }
}

function toSegment(x: number, y: number, ax: number, ay: number, bx: number, by: number): number {
  const squared = (bx - ax) ** 2 + (by - ay) ** 2 || 1;
  const along = Math.min(1, Math.max(0, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / squared));
  return Math.hypot(x - ax - (bx - ax) * along, y - ay - (by - ay) * along);
}
