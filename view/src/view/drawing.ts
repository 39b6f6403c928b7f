// Draws a topology into a canvas: host boxes, cables coloured by load, nodes filled by what they hold, messages on
// their way. The closer the reader, the more is shown; from afar, the cables of a host are one bundle.
import { loadColour } from "../shared/colours";
import { fitText } from "../shared/canvas";
import type { Palette, Theme } from "../shared/theme";
import type { Cable, Model } from "./model";

export interface Look {
  palette: Palette;
  theme: Theme;
  at: number; // time
  byRun: boolean; // loads of the whole run, not of this instant
  followed: { links: Set<number>; messages: Set<number> | null } | null;
  holders: Set<number> | null; // ranks that hold the followed chunk
  rank: number | null; // followed
  hover: Target | null;
}
export interface View {
  scale: number; // pixels per unit
  x: number; // pixel of the origin
  y: number;
  width: number; // of the canvas
  height: number;
}
export type Target = { kind: "node"; node: number } | { kind: "cable"; cable: number };

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

// What is drawn, in units of the layout, with room for nodes at the edge.
export function bounds(model: Model): Box {
  const { nodes, hosts } = model.data.topology;
  let left = Infinity, top = Infinity, right = -Infinity, bottom = -Infinity;
  const take = (x0: number, y0: number, x1: number, y1: number) => {
    left = Math.min(left, x0);
    top = Math.min(top, y0);
    right = Math.max(right, x1);
    bottom = Math.max(bottom, y1);
  };
  nodes.x.forEach((x, i) => take(x - 0.8, nodes.y[i]! - 0.8, x + 0.8, nodes.y[i]! + 0.8));
  hosts.x.forEach((x, i) => take(x, hosts.y[i]! - 0.3, x + hosts.width[i]!, hosts.y[i]! + hosts.height[i]!));
  return { x: left, y: top, width: right - left, height: bottom - top };
}

// How a cable runs: straight, or bowed where it would pass through other nodes.
export interface Route {
  bow: number; // distance of the middle from the straight line, in units; 0: straight
}

export class Drawing {
  readonly routes: Route[];
  readonly isSwitchWide: number[]; // half width of each node, in units
  private readonly bundles: { a: number; b: number; cables: number[] }[]; // between hosts or nodes, from afar
  private readonly hostOf: (node: number) => number;
  readonly box: Box;

  constructor(readonly model: Model) {
    const { nodes, hosts } = model.data.topology;
    this.box = bounds(model);
    this.hostOf = (node) => (hosts.width[nodes.host[node]!] ? nodes.host[node]! : -1);
    this.isSwitchWide = [...nodes.kind].map((kind, i) => (kind === "s" ? Math.min(2.2, Math.max(0.55, 0.16 * nodes.label[i]!.length + 0.3)) : kind === "n" ? 0.38 : 0.5));
    this.routes = this.findRoutes();
    this.bundles = this.findBundles();
  }

  private findRoutes(): Route[] {
    const { nodes } = this.model.data.topology;
    const grid = new Map<string, number[]>();
    nodes.x.forEach((x, i) => {
      const key = `${Math.floor(x / 2)},${Math.floor(nodes.y[i]! / 2)}`;
      grid.set(key, [...(grid.get(key) ?? []), i]);
    });
    return this.model.cables.map(({ a, b }) => {
      const ax = nodes.x[a]!, ay = nodes.y[a]!, dx = nodes.x[b]! - ax, dy = nodes.y[b]! - ay;
      const length = Math.hypot(dx, dy);
      if (length < 1.5) return { bow: 0 };
      const steps = Math.ceil(length / 0.8);
      let hits = 0;
      const seen = new Set<number>();
      for (let s = 1; s < steps; s++) {
        const x = ax + (dx * s) / steps, y = ay + (dy * s) / steps;
        for (const cx of [Math.floor((x - 0.45) / 2), Math.floor((x + 0.45) / 2)])
          for (const cy of [Math.floor((y - 0.45) / 2), Math.floor((y + 0.45) / 2)])
            for (const node of grid.get(`${cx},${cy}`) ?? []) {
              if (node === a || node === b || seen.has(node)) continue;
              const off = Math.abs((nodes.x[node]! - ax) * dy - (nodes.y[node]! - ay) * dx) / length;
              const along = ((nodes.x[node]! - ax) * dx + (nodes.y[node]! - ay) * dy) / length;
              if (off < 0.35 && along > 0.4 && along < length - 0.4) {
                seen.add(node);
                hits++;
              }
            }
      }
      if (hits === 0) return { bow: 0 };
      // Bow to the outside: away from the middle of the drawing, or up and to the left along a middle line.
      const side = dx * (this.box.y + this.box.height / 2 - (ay + dy / 2)) - dy * (this.box.x + this.box.width / 2 - (ax + dx / 2));
      return { bow: (side > 0 ? -1 : 1) * Math.min(0.8 + 0.12 * length, 3) };
    });
  }

  private findBundles() {
    const found = new Map<string, { a: number; b: number; cables: number[] }>();
    this.model.cables.forEach((cable, i) => {
      const ha = this.hostOf(cable.a), hb = this.hostOf(cable.b);
      if (ha >= 0 && ha === hb) return;
      const a = ha >= 0 ? -1 - ha : cable.a, b = hb >= 0 ? -1 - hb : cable.b;
      const key = `${a},${b}`;
      const bundle = found.get(key) ?? { a, b, cables: [] };
      bundle.cables.push(i);
      found.set(key, bundle);
    });
    return [...found.values()];
  }

  // From afar nodes of hosts are folded into their hosts.
  isFolded(view: View): boolean {
    return view.scale < 5 && this.model.data.topology.hosts.width.some((width) => width > 0);
  }

  draw(context: CanvasRenderingContext2D, view: View, look: Look) {
    context.save();
    this.drawHosts(context, view, look);
    if (this.isFolded(view)) {
      this.drawBundles(context, view, look);
      this.drawFoldedHosts(context, view, look);
      this.drawNodes(context, view, look, (node) => this.hostOf(node) < 0);
    } else {
      this.drawCables(context, view, look);
      this.drawPackets(context, view, look);
      this.drawNodes(context, view, look, () => true);
    }
    context.restore();
  }

  private point(view: View, node: number): [number, number] {
    const { nodes, hosts } = this.model.data.topology;
    if (node < 0) {
      const host = -1 - node;
      return [view.x + (hosts.x[host]! + hosts.width[host]! / 2) * view.scale, view.y + (hosts.y[host]! + hosts.height[host]! / 2) * view.scale];
    }
    return [view.x + nodes.x[node]! * view.scale, view.y + nodes.y[node]! * view.scale];
  }

  private drawHosts(context: CanvasRenderingContext2D, view: View, look: Look) {
    const { hosts } = this.model.data.topology;
    context.lineWidth = 1;
    context.strokeStyle = look.palette.line;
    context.fillStyle = look.palette.panel;
    hosts.x.forEach((x, i) => {
      if (!hosts.width[i]) return;
      const box = [view.x + x * view.scale, view.y + hosts.y[i]! * view.scale, hosts.width[i]! * view.scale, hosts.height[i]! * view.scale] as const;
      context.beginPath();
      context.roundRect(...box, Math.min(8, 0.4 * view.scale));
      context.fill();
      context.stroke();
    });
    if (this.isFolded(view)) return;
    context.font = "600 11px system-ui, sans-serif";
    context.textAlign = "left";
    context.textBaseline = "top";
    context.fillStyle = look.palette.soft;
    hosts.x.forEach((x, i) => {
      const width = hosts.width[i]! * view.scale;
      if (width < 30 || !hosts.name[i] || view.scale < 9) return;
      context.fillText(fitText(context, hosts.name[i]!, width - 12), view.x + x * view.scale + 6, view.y + hosts.y[i]! * view.scale + 4);
    });
  }

  private loadOf(link: number, look: Look): number {
    return look.byRun ? this.model.loadTotal(link) : this.model.loadNow(link, look.at);
  }

  private loadOfLinks(links: number[], look: Look): number {
    let sum = 0;
    for (const link of links) sum += this.loadOf(link, look);
    return links.length ? sum / links.length : 0;
  }

  // The two directions of a cable lie side by side where there is room; else the busier one is shown.
  private drawCables(context: CanvasRenderingContext2D, view: View, look: Look) {
    const { links } = this.model.data.topology;
    const beside = view.scale >= 14 ? Math.min(2.6, view.scale / 14) : 0;
    const many = this.model.cables.length > 600;
    context.lineCap = "butt";
    const lanes: { cable: Cable; route: Route; link: number; load: number; shift: number; width: number; dim: boolean; critical: boolean }[] = [];
    this.model.cables.forEach((cable, i) => {
      const both = this.model.hasBothWays(cable);
      for (const side of [cable.forward, cable.backward]) {
        if (side.length === 0) continue;
        const load = this.loadOfLinks(side, look);
        const dim = look.followed !== null && !side.some((link) => look.followed!.links.has(link));
        const speed = side.reduce((sum, link) => sum + links.bandwidth[link]!, 0) / this.model.maxBandwidth;
        const width = Math.min(1 + 2.2 * Math.sqrt(speed), many ? 2 : 4) * Math.min(1, Math.max(0.45, view.scale / 22));
        const shift = both && beside ? (side === cable.forward ? 1 : -1) * (beside * 0.5 + width / 2) : 0;
        lanes.push({ cable, route: this.routes[i]!, link: side[0]!, load, shift, width, dim, critical: side.some((link) => this.model.critical.has(link)) });
      }
    });
    lanes.sort((a, b) => Number(b.dim) - Number(a.dim) || a.load - b.load);
    for (const lane of lanes) {
      context.globalAlpha = lane.dim ? 0.16 : lane.load > 0.02 ? 1 : 0.75;
      context.strokeStyle = loadColour(lane.load, look.theme);
      context.lineWidth = lane.dim ? 1 : lane.width;
      this.trace(context, view, lane.cable, lane.route, lane.shift);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  // The path of a lane: to the right of the way from a to b by `shift` pixels.
  private trace(context: CanvasRenderingContext2D, view: View, cable: Cable, route: Route, shift: number) {
    const [ax, ay] = this.point(view, cable.a), [bx, by] = this.point(view, cable.b);
    const length = Math.hypot(bx - ax, by - ay) || 1;
    const nx = -(by - ay) / length, ny = (bx - ax) / length;
    context.beginPath();
    context.moveTo(ax + nx * shift, ay + ny * shift);
    if (route.bow === 0) {
      context.lineTo(bx + nx * shift, by + ny * shift);
    } else {
      const bow = 2 * route.bow * view.scale + shift;
      context.quadraticCurveTo((ax + bx) / 2 + nx * bow, (ay + by) / 2 + ny * bow, bx + nx * shift, by + ny * shift);
    }
  }

  // The place at share `along` of a link, on its lane.
  private place(view: View, link: number, cable: Cable, route: Route, along: number): [number, number] {
    const { from } = this.model.data.topology.links;
    const forward = from[link] === cable.a;
    const s = forward ? along : 1 - along;
    const [ax, ay] = this.point(view, cable.a), [bx, by] = this.point(view, cable.b);
    const length = Math.hypot(bx - ax, by - ay) || 1;
    const nx = -(by - ay) / length, ny = (bx - ax) / length;
    const shift = (this.model.hasBothWays(cable) && view.scale >= 14 ? 2.2 : 0) * (forward ? 1 : -1);
    const bow = route.bow === 0 ? shift : shift + 2 * route.bow * view.scale * 2 * s * (1 - s);
    return [ax + (bx - ax) * s + nx * bow, ay + (by - ay) * s + ny * bow];
  }

  private cableOfLink: Int32Array | undefined;
  cableOf(link: number): number {
    if (!this.cableOfLink) {
      this.cableOfLink = new Int32Array(this.model.numLinks);
      this.model.cables.forEach((cable, i) => {
        for (const l of [...cable.forward, ...cable.backward]) this.cableOfLink![l] = i;
      });
    }
    return this.cableOfLink[link]!;
  }

  // A dot for every message that is on a link, as far along it as it has been sent.
  private drawPackets(context: CanvasRenderingContext2D, view: View, look: Look) {
    const detail = this.model.data.schedule.detail;
    if (!detail || look.byRun) return;
    const { latency } = this.model.data.topology.links;
    const radius = Math.min(3.4, Math.max(1.4, view.scale / 9));
    const { hopFirst, hopsOfLink, messageOfHop } = this.model;
    let drawn = 0;
    for (const link of this.model.usedLinks) {
      const cable = this.cableOf(link);
      for (let i = hopFirst[link]!; i < hopFirst[link + 1]! && drawn < 3000; i++) {
        const hop = hopsOfLink[i]!;
        const start = detail.hop_start[hop]!;
        if (start > look.at) break;
        const end = detail.hop_end[hop]! + latency[link]!;
        if (end <= look.at) continue;
        const dim = look.followed?.messages && !look.followed.messages.has(messageOfHop[hop]!);
        const [x, y] = this.place(view, link, this.model.cables[cable]!, this.routes[cable]!, (look.at - start) / (end - start));
        context.globalAlpha = dim ? 0.15 : 1;
        context.fillStyle = look.followed && !dim ? look.palette.critical : look.palette.ink;
        context.beginPath();
        context.arc(x, y, look.followed && !dim ? radius * 1.25 : radius, 0, 2 * Math.PI);
        context.fill();
        context.lineWidth = 1;
        context.strokeStyle = look.palette.paper;
        context.stroke();
        drawn++;
      }
    }
    context.globalAlpha = 1;
  }

  private drawBundles(context: CanvasRenderingContext2D, view: View, look: Look) {
    const { model } = this;
    context.globalAlpha = 0.8;
    for (const bundle of this.bundles) {
      const links = bundle.cables.flatMap((i) => [...model.cables[i]!.forward, ...model.cables[i]!.backward]);
      const dim = look.followed !== null && !links.some((link) => look.followed!.links.has(link));
      context.globalAlpha = dim ? 0.08 : 0.7;
      context.strokeStyle = loadColour(this.loadOfLinks(links, look), look.theme);
      context.lineWidth = 1;
      const [ax, ay] = this.point(view, bundle.a), [bx, by] = this.point(view, bundle.b);
      context.beginPath();
      context.moveTo(ax, ay);
      context.lineTo(bx, by);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  // A host from afar: filled from below by what its ranks hold.
  private drawFoldedHosts(context: CanvasRenderingContext2D, view: View, look: Look) {
    const { hosts, nodes } = this.model.data.topology;
    const sums = hosts.name.map(() => ({ share: 0, ranks: 0, holds: false }));
    nodes.rank.forEach((rank, node) => {
      const host = nodes.host[node]!;
      if (rank < 0 || host < 0) return;
      sums[host]!.share += Math.max(0, this.model.holdings.ofRank(rank));
      sums[host]!.ranks++;
      if (look.holders?.has(rank)) sums[host]!.holds = true;
    });
    hosts.x.forEach((hx, i) => {
      if (!hosts.width[i]) return;
      const x = view.x + hx * view.scale, y = view.y + hosts.y[i]! * view.scale;
      const width = hosts.width[i]! * view.scale, height = hosts.height[i]! * view.scale;
      const share = sums[i]!.ranks ? sums[i]!.share / sums[i]!.ranks : 0;
      context.fillStyle = look.palette.raised;
      context.fillRect(x, y, width, height);
      context.globalAlpha = 0.75;
      context.fillStyle = look.holders ? (sums[i]!.holds ? look.palette.critical : look.palette.raised) : look.palette.accent;
      const full = look.holders ? 1 : share;
      context.fillRect(x, y + height * (1 - full), width, height * full);
      context.globalAlpha = 1;
      context.strokeStyle = look.palette["strong-line"];
      context.lineWidth = 1;
      context.strokeRect(x, y, width, height);
      if (height >= 13 && width >= 20) {
        context.font = "600 10px system-ui, sans-serif";
        context.textAlign = "center";
        context.textBaseline = "middle";
        const text = fitText(context, hosts.name[i]!, width - 4);
        const textWidth = context.measureText(text).width;
        context.globalAlpha = 0.85;
        context.fillStyle = look.palette.paper;
        context.fillRect(x + width / 2 - textWidth / 2 - 2, y + height / 2 - 6, textWidth + 4, 12);
        context.globalAlpha = 1;
        context.fillStyle = look.palette.ink;
        context.fillText(text, x + width / 2, y + height / 2);
      }
    });
  }

  private drawNodes(context: CanvasRenderingContext2D, view: View, look: Look, wanted: (node: number) => boolean) {
    const { nodes } = this.model.data.topology;
    const size = view.scale;
    for (let node = 0; node < nodes.kind.length; node++) {
      if (!wanted(node)) continue;
      const [x, y] = this.point(view, node);
      if (x < -2 * size || y < -2 * size || x > view.width + 2 * size || y > view.height + 2 * size) continue;
      const rank = nodes.rank[node]!;
      const isHover = look.hover?.kind === "node" && look.hover.node === node;
      const dim = look.holders !== null && rank >= 0 && !look.holders.has(rank);
      this.drawNode(context, node, x, y, size, look, dim, isHover || (rank >= 0 && rank === look.rank));
    }
  }

  private drawNode(context: CanvasRenderingContext2D, node: number, x: number, y: number, size: number, look: Look, dim: boolean, strong: boolean) {
    const { nodes } = this.model.data.topology;
    const kind = nodes.kind[node]!, rank = nodes.rank[node]!;
    const wide = Math.max(this.isSwitchWide[node]! * size, 1.5), high = Math.max((kind === "g" ? 0.5 : kind === "s" ? 0.38 : 0.3) * size, 1.5);
    const corner = kind === "s" ? high : kind === "n" ? high : Math.min(5, 0.15 * size);
    context.beginPath();
    context.roundRect(x - wide, y - high, 2 * wide, 2 * high, corner);
    context.fillStyle = kind === "g" ? look.palette.raised : look.palette.panel;
    context.fill();
    if (kind === "g") {
      const share = look.holders ? (look.holders.has(rank) ? 1 : 0) : this.model.holdings.ofRank(rank);
      if (share > 0) {
        context.save();
        context.clip();
        context.globalAlpha = 0.8;
        context.fillStyle = look.holders ? look.palette.critical : look.palette.accent;
        context.fillRect(x - wide, y + high - 2 * high * share, 2 * wide, 2 * high * share);
        context.restore();
      }
    }
    context.lineWidth = strong ? 2.5 : 1;
    context.strokeStyle = strong ? look.palette.critical : dim ? look.palette.line : look.palette["strong-line"];
    if (size >= 4 || strong) context.stroke();
    if (size < 13) return;
    const font = Math.min(13, Math.max(9, 0.42 * size));
    context.font = `${kind === "g" ? "600 " : ""}${kind === "g" ? font : Math.max(9, font - 1)}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const text = fitText(context, nodes.label[node]!, 2 * wide - 3);
    if (!text || (text.endsWith("\u2026") && text.length < 4)) return;
    if (kind === "g") {
      // A halo keeps the number readable on both halves of the tank.
      context.lineWidth = 3;
      context.strokeStyle = look.palette.raised;
      context.strokeText(text, x, y + 0.5);
    }
    context.fillStyle = look.palette.ink;
    context.fillText(text, x, y + 0.5);
  }

  // What lies at a pixel.
  pick(view: View, x: number, y: number): Target | null {
    const { nodes } = this.model.data.topology;
    const folded = this.isFolded(view);
    for (let node = nodes.kind.length - 1; node >= 0; node--) {
      if (folded && this.hostOf(node) >= 0) continue;
      const [nx, ny] = this.point(view, node);
      const wide = Math.max(this.isSwitchWide[node]! * view.scale, 5), high = Math.max(0.5 * view.scale, 5);
      if (Math.abs(x - nx) <= wide && Math.abs(y - ny) <= high) return { kind: "node", node };
    }
    if (folded) return null;
    let best = -1, least = 7;
    this.model.cables.forEach((cable, i) => {
      const distance = this.distance(view, cable, this.routes[i]!, x, y);
      if (distance < least) {
        least = distance;
        best = i;
      }
    });
    return best < 0 ? null : { kind: "cable", cable: best };
  }

  // The host box at a pixel; -1: none.
  pickHost(view: View, x: number, y: number): number {
    const { hosts } = this.model.data.topology;
    const ux = (x - view.x) / view.scale, uy = (y - view.y) / view.scale;
    return hosts.x.findIndex((hx, i) => ux >= hx && uy >= hosts.y[i]! && ux <= hx + hosts.width[i]! && uy <= hosts.y[i]! + hosts.height[i]!);
  }

  private distance(view: View, cable: Cable, route: Route, x: number, y: number): number {
    const [ax, ay] = this.point(view, cable.a), [bx, by] = this.point(view, cable.b);
    const margin = Math.abs(route.bow) * view.scale + 8;
    if (x < Math.min(ax, bx) - margin || x > Math.max(ax, bx) + margin || y < Math.min(ay, by) - margin || y > Math.max(ay, by) + margin) return Infinity;
    const length = Math.hypot(bx - ax, by - ay) || 1;
    const along = Math.min(1, Math.max(0, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / (length * length)));
    const off = ((x - ax) * -(by - ay) + (y - ay) * (bx - ax)) / length;
    const bow = route.bow * view.scale * 4 * along * (1 - along);
    const px = ax + (bx - ax) * along, py = ay + (by - ay) * along;
    return route.bow === 0 ? Math.hypot(x - px, y - py) : Math.abs(off - bow);
  }
}
