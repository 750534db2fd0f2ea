//! The drawing of a scene, in SVG, by classes of the stylesheet alone.

mod label;

use std::fmt::Write as _;

use super::clock::{Clock, PARTS};
use super::escaped;
use super::scene::{Arrow, Bar, Kind, Lane, Scene};
use crate::lab::words::Words;

/// How a diagram is to look.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    pub width: f64,
    /// 1 on a desk, more on a projector.
    pub scale: f64,
    /// Short names of lanes.
    pub narrow: bool,
    /// Distinguishes diagrams on one page.
    pub id: &'a str,
    /// What the picture says, for those who do not see it.
    pub title: &'a str,
}

struct Pen<'a> {
    scene: &'a Scene,
    clock: &'a Clock,
    look: Look<'a>,
    words: &'a Words,
    out: String,
}

/// The whole diagram.
pub fn draw(scene: &Scene, clock: &Clock, look: Look<'_>, words: &Words) -> String {
    let mut pen = Pen { scene, clock, look, words, out: String::new() };
    pen.open();
    pen.bands();
    pen.lanes();
    pen.folds();
    for bar in &scene.bars {
        pen.bar(bar);
    }
    for arrow in &scene.arrows {
        pen.arrow(arrow);
    }
    if let Some((lane, moment)) = scene.torn {
        pen.torn(lane, moment);
    }
    pen.out.push_str("</svg>");
    pen.out
}

impl Pen<'_> {
    fn put(&mut self, args: std::fmt::Arguments<'_>) {
        self.out.write_fmt(args).expect("a string takes everything");
    }

    fn gap(&self) -> f64 {
        let lanes = self.scene.lanes.len().max(2);
        #[expect(clippy::cast_precision_loss, reason = "seven lanes at most")]
        let gaps = (lanes - 1) as f64;
        (self.look.width - 2.0 * self.pad()) / gaps
    }

    fn pad(&self) -> f64 {
        if self.look.narrow { 24.0 } else { 40.0 * self.look.scale }
    }

    fn x(&self, lane: Lane) -> f64 {
        let index = self.scene.lanes.iter().position(|(known, _)| *known == lane).unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "seven lanes at most")]
        let index = index as f64;
        self.pad() + index * self.gap()
    }

    fn end(&self) -> f64 {
        let last = self.scene.moments().max();
        last.map_or(self.clock.end, |last| self.clock.y(last) + self.clock.row * 0.65)
    }

    fn open(&mut self) {
        let (width, height, id) =
            (self.look.width, self.end().max(self.clock.end.min(self.end())) + 12.0, self.look.id);
        let title = escaped(self.look.title);
        self.put(format_args!(
            "<svg class=\"seq\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{title}\"><defs>\
             <pattern id=\"{id}h\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect class=\"p-tint\" width=\"6\" height=\"6\"/><path class=\"p-line\" d=\"M0 0v6\"/></pattern>\
             <pattern id=\"{id}w\" width=\"4\" height=\"5\" patternUnits=\"userSpaceOnUse\"><rect class=\"p-wait\" width=\"4\" height=\"5\"/><circle class=\"p-dot\" cx=\"2\" cy=\"2.5\" r=\".9\"/></pattern></defs>"
        ));
    }

    fn bands(&mut self) {
        let (row, width) = (self.clock.row, self.look.width);
        let duplicates: Vec<(usize, f64)> = self
            .scene
            .arrows
            .iter()
            .filter(|arrow| arrow.kind == Kind::Duplicate && arrow.coin.is_some())
            .map(|arrow| (self.clock.index(arrow.moment), self.clock.y(arrow.moment) - row * 0.72))
            .collect();
        for (index, y) in duplicates {
            self.put(format_args!(
                "<rect class=\"band\" data-row=\"{index}\" x=\"0\" y=\"{y:.1}\" width=\"{width:.0}\" height=\"{row:.1}\"/>"
            ));
        }
    }

    fn lanes(&mut self) {
        let (k, top, end) = (self.look.scale, self.clock.top, self.end());
        for (lane, used) in self.scene.lanes.clone() {
            let x = self.x(lane);
            let off = if used { "" } else { " off" };
            let name = escaped(&self.words.say(&self.lane_text(lane, "lane")));
            let sub = match used {
                true => escaped(&self.words.say(&self.lane_text(lane, "sub"))),
                false => escaped(&self.words.say("sub-not-used")),
            };
            let (name_y, name_size, sub_y, sub_size) = if self.look.narrow {
                (20.0, 12.0, 0.0, 0.0)
            } else {
                (20.0 * k, 13.0 * k, 38.0 * k, 11.5 * k)
            };
            self.put(format_args!(
                "<text class=\"name{off}\" x=\"{x:.1}\" y=\"{name_y:.0}\" text-anchor=\"middle\" font-size=\"{name_size}\">{name}</text>"
            ));
            if sub_size > 0.0 {
                self.put(format_args!(
                    "<text class=\"sub\" x=\"{x:.1}\" y=\"{sub_y:.0}\" text-anchor=\"middle\" font-size=\"{sub_size}\">{sub}</text>"
                ));
            }
            let dead = self.scene.torn.filter(|(torn, _)| *torn == lane);
            let to = dead.map_or(end, |(_, moment)| self.clock.y(moment) + 6.0 * k);
            let from = top - 14.0 * k;
            self.put(format_args!(
                "<line class=\"lane{off}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{from:.1}\" y2=\"{to:.1}\"/>"
            ));
            if used && dead.is_none() {
                let (left, right) = (x - 5.0 * k, x + 5.0 * k);
                self.put(format_args!(
                    "<line class=\"cap\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{end:.1}\" y2=\"{end:.1}\"/>"
                ));
            }
        }
    }

    fn lane_text(&self, lane: Lane, kind: &str) -> String {
        let two = self.scene.lanes.iter().any(|(lane, _)| *lane == Lane::AdaToo);
        let name = match (lane, two) {
            (Lane::Ada, false) => "ada",
            (Lane::Ada, true) => "tab-1",
            (Lane::AdaToo, _) => "tab-2",
            (Lane::A, _) => "a",
            (Lane::B, _) => "b",
            (Lane::Redis, _) => "redis",
            (Lane::Postgres, _) => "postgres",
            (Lane::Provider, _) => "provider",
        };
        let short = if self.look.narrow && kind == "lane" { "short" } else { kind };
        format!("{short}-{name}")
    }

    fn folds(&mut self) {
        let (width, end, k) = (self.look.width, self.end(), self.look.scale);
        for fold in self.clock.folds.clone() {
            if fold.y > end {
                continue;
            }
            let (y, height) = (fold.y, fold.height);
            self.put(format_args!(
                "<rect class=\"fold\" x=\"0\" y=\"{y:.1}\" width=\"{width:.0}\" height=\"{height:.1}\"/>"
            ));
            for (lane, used) in self.scene.lanes.clone() {
                let dead =
                    self.scene.torn.is_some_and(|(torn, at)| torn == lane && self.clock.y(at) < y);
                if used && !dead {
                    let x = self.x(lane);
                    self.put(format_args!(
                        "<path class=\"lane\" d=\"M{x:.1} {y:.1}v{height:.1}\" stroke-dasharray=\"1.5 {:.1}\"/>", 4.0 * k
                    ));
                }
            }
        }
    }

    fn bar(&mut self, bar: &Bar) {
        let k = self.look.scale;
        let (x, class, id) = (self.x(bar.lane), bar.class, self.look.id);
        let width = if class == "lease" { 12.0 * k } else { 8.0 * k };
        let (from, to) = (self.clock.y(bar.from), self.clock.y(bar.to));
        let height = (to - from).max(4.0) + if bar.crash { 4.0 * k } else { 0.0 };
        let radius = if bar.crash { 0 } else { 2 };
        let fill = match class {
            "lease" => format!(" fill=\"url(#{id}h)\""),
            "wait" => format!(" fill=\"url(#{id}w)\""),
            _ => String::new(),
        };
        let (left, index) = (x - width / 2.0, self.clock.index(bar.from));
        self.put(format_args!(
            "<rect class=\"{class}\" data-row=\"{index}\" x=\"{left:.1}\" y=\"{from:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{radius}\"{fill}/>"
        ));
    }

    fn arrow(&mut self, arrow: &Arrow) {
        let k = self.look.scale;
        let (y, index) = (self.clock.y(arrow.moment), self.clock.index(arrow.moment));
        let (from, to, class) = (self.x(arrow.from), self.x(arrow.to), arrow.kind.class());
        let event = escaped(&self.sentence(arrow));
        let ms = arrow.moment / PARTS;
        let mark = if arrow.click.is_some() { "press" } else { class };
        self.put(format_args!("<g data-row=\"{index}\" data-ms=\"{ms}\" data-kind=\"{mark}\" data-says=\"{event}\" class=\"ev\">"));
        if arrow.kind == Kind::Note {
            self.click(arrow, from, y);
            self.label(&arrow.text, from + 14.0 * k, y + 4.0 * k, "start", class);
            self.out.push_str("</g>");
            return;
        }
        let way = if to > from { 1.0 } else { -1.0 };
        let ringed = arrow.kind == Kind::Replay && matches!(arrow.to, Lane::Ada | Lane::AdaToo);
        let start = from + way * 5.0 * k;
        let stop = to - way * if arrow.coin.is_some() || ringed { 14.0 * k } else { 5.0 * k };
        if arrow.lost {
            self.lost(start, from + (to - from) * 0.74, y);
        } else {
            self.line(arrow.kind, (start, stop), y, way);
        }
        if let Some(coin) = arrow.coin {
            let second = if arrow.kind == Kind::Duplicate { " d" } else { "" };
            self.put(format_args!(
                "<circle class=\"coin{second}\" cx=\"{to:.1}\" cy=\"{y:.1}\" r=\"{:.1}\"/><text class=\"cointx\" x=\"{to:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"{:.1}\">{coin}</text>",
                10.0 * k, y + 4.0 * k, 12.0 * k
            ));
        }
        if ringed {
            self.put(format_args!(
                "<circle class=\"ring\" cx=\"{to:.1}\" cy=\"{y:.1}\" r=\"{:.1}\"/>",
                8.0 * k
            ));
        }
        self.click(arrow, from, y);
        self.place_label(arrow, (from, to), way, y);
        self.out.push_str("</g>");
    }

    fn line(&mut self, kind: Kind, (start, stop): (f64, f64), y: f64, way: f64) {
        let (k, class, head) = (self.look.scale, kind.class(), 8.0 * self.look.scale);
        let open = matches!(kind, Kind::Back | Kind::DuplicateBack | Kind::Replay);
        let dashes = if open && kind != Kind::Replay {
            format!(" stroke-dasharray=\"{:.1} {:.1}\"", 5.0 * k, 4.0 * k)
        } else {
            String::new()
        };
        let line_end = stop - way * if open { 1.0 } else { head * 0.7 };
        self.put(format_args!(
            "<path class=\"{class}\" d=\"M{start:.1} {y:.1}H{line_end:.1}\"{dashes}/>"
        ));
        let back = stop - way * head;
        if open {
            self.put(format_args!(
                "<path class=\"hd {class}\" d=\"M{back:.1} {:.1}L{stop:.1} {y:.1}L{back:.1} {:.1}\"/>", y - 4.5 * k, y + 4.5 * k
            ));
        } else {
            self.put(format_args!(
                "<path class=\"hd {class}\" d=\"M{stop:.1} {y:.1}l{:.1} {:.1}v{:.1}z\"/>",
                -way * head * 1.1,
                -4.8 * k,
                9.6 * k
            ));
        }
    }

    fn lost(&mut self, start: f64, stop: f64, y: f64) {
        let k = self.look.scale;
        self.put(format_args!(
            "<path class=\"ret\" d=\"M{start:.1} {y:.1}H{stop:.1}\" stroke-dasharray=\"{:.1} {:.1}\"/><path class=\"dupret\" d=\"M{:.1} {:.1}l{s:.1} {s:.1}m0 -{s:.1}l-{s:.1} {s:.1}\"/>",
            5.0 * k, 4.0 * k, stop - 5.0 * k, y - 5.0 * k, s = 10.0 * k
        ));
    }

    fn click(&mut self, arrow: &Arrow, x: f64, y: f64) {
        let Some(click) = arrow.click else { return };
        let k = self.look.scale;
        self.put(format_args!(
            "<circle class=\"clk\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\"/><text class=\"clktx\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"{:.1}\">{click}</text>",
            10.0 * k, y + 4.0 * k, 12.0 * k
        ));
    }

    fn torn(&mut self, lane: Lane, moment: i64) {
        let k = self.look.scale;
        let (x, y, z) = (self.x(lane), self.clock.y(moment) + 6.0 * k, 9.0 * k);
        let index = self.clock.index(moment);
        let mut path = format!("M{:.1} {:.1}", x - z * 2.5, y + z * 0.3);
        for _ in 0..5 {
            let _ = write!(path, "l{:.1} {:.1}l{:.1} {:.1}", z / 2.0, -z * 0.7, z / 2.0, z * 0.7);
        }
        let text = self.words.say(if lane == Lane::Redis { "flow-stopped" } else { "flow-killed" });
        let (says, ms) = (escaped(&text), moment / PARTS);
        self.put(format_args!("<g data-row=\"{index}\" data-ms=\"{ms}\" data-kind=\"torn\" data-says=\"{says}\" class=\"ev\"><path class=\"torn\" d=\"{path}\"/>"));
        self.label(&text, x + z * 3.0, y + 4.0 * k, "start", "dup");
        self.out.push_str("</g>");
    }

    fn sentence(&self, arrow: &Arrow) -> String {
        sentence(self.words, arrow)
    }
}

/// One step as a line of text: who, to whom, what.
pub(super) fn sentence(words: &Words, arrow: &Arrow) -> String {
    let name = |lane: Lane| {
        words.say(match lane {
            Lane::Ada | Lane::AdaToo => "lane-ada",
            Lane::A => "lane-a",
            Lane::B => "lane-b",
            Lane::Redis => "lane-redis",
            Lane::Postgres => "lane-postgres",
            Lane::Provider => "lane-provider",
        })
    };
    let (from, to) = (name(arrow.from), name(arrow.to));
    if arrow.from == arrow.to {
        return words.with("step-note", &[("who", &from), ("what", &arrow.text)]);
    }
    words.with("step", &[("from", &from), ("to", &to), ("what", &arrow.text)])
}

impl Arrow {
    /// This step as a line of text.
    pub fn sentence(&self, words: &Words) -> String {
        sentence(words, self)
    }
}

/// The clock itself, to stand beside or between diagrams.
pub fn gutter(clock: &Clock, width: f64, words: &Words) -> String {
    let k = clock.row / 30.0;
    let (middle, height, size) = (width / 2.0, clock.end + 12.0, 11.5 * k);
    let mut out = format!(
        "<svg class=\"seq clock\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" aria-hidden=\"true\"><text class=\"tm\" x=\"{middle:.0}\" y=\"{:.0}\" text-anchor=\"middle\" font-size=\"{size}\">{}</text><text class=\"tm\" x=\"{middle:.0}\" y=\"{:.0}\" text-anchor=\"middle\" font-size=\"{size}\">ms</text>",
        20.0 * k,
        escaped(&words.say("time")),
        38.0 * k
    );
    for fold in &clock.folds {
        let ms = fold.ms.to_string();
        // A narrow one has room for the number only.
        let text = if width < 60.0 { ms } else { escaped(&words.with("quiet", &[("ms", &ms)])) };
        let _ = write!(
            out,
            "<rect class=\"fold\" x=\"0\" y=\"{:.1}\" width=\"{width:.0}\" height=\"{:.1}\"/><text class=\"tm\" x=\"{middle:.0}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"{size}\">{text}</text>",
            fold.y,
            fold.height,
            fold.y + fold.height / 2.0 + 4.0 * k
        );
    }
    let mut before = None;
    for (ms, y) in clock.rows() {
        if before != Some(ms) {
            let _ = write!(
                out,
                "<text class=\"tm m\" x=\"{middle:.0}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"{size}\">{ms}</text>",
                y + 4.0 * k
            );
        }
        before = Some(ms);
    }
    out.push_str("</svg>");
    out
}
