//! Where the label of an arrow has room.

use super::Pen;
use crate::lab::diagram::escaped;
use crate::lab::diagram::scene::Arrow;

impl Pen<'_> {
    /// Above the line at the sender's end; past a bar that is in the way; beyond the head; behind
    /// the sender; else it stays, and its halo cuts the bar.
    pub(super) fn place_label(&mut self, arrow: &Arrow, (from, to): (f64, f64), way: f64, y: f64) {
        let k = self.look.scale;
        let class = arrow.kind.class();
        let width = self.measure(&arrow.text, class);
        let near = from + way * if arrow.click.is_some() { 16.0 } else { 11.0 } * k;
        let anchor = |way: f64| if way > 0.0 { "start" } else { "end" };
        if self.free(near, way, width, y) {
            return self.label(&arrow.text, near, y - 6.0 * k, anchor(way), class);
        }
        let blocking = self.blocking(near, way, width, y).map(|bar| bar + way * 10.0 * k);
        if let Some(past) = blocking
            && (to - past) * way > width + 8.0 * k
            && self.free(past, way, width, y)
        {
            return self.label(&arrow.text, past, y - 6.0 * k, anchor(way), class);
        }
        let beyond = to + way * if arrow.coin.is_some() { 16.0 } else { 9.0 } * k;
        if self.free(beyond, way, width, y + 9.0 * k) {
            return self.label(&arrow.text, beyond, y + 4.0 * k, anchor(way), class);
        }
        let behind = from - way * 10.0 * k;
        if arrow.click.is_none() && self.free(behind, -way, width, y + 9.0 * k) {
            return self.label(&arrow.text, behind, y + 4.0 * k, anchor(-way), class);
        }
        self.label(&arrow.text, near, y - 6.0 * k, anchor(way), class);
    }

    fn hit(&self, left: f64, right: f64, y: f64) -> Option<f64> {
        let above = y - 13.0 * self.look.scale;
        self.scene.bars.iter().find_map(|bar| {
            let x = self.x(bar.lane);
            let (from, to) = (self.clock.y(bar.from), self.clock.y(bar.to));
            (x > left - 4.0 && x < right + 4.0 && from < y - 1.0 && to > above).then_some(x)
        })
    }

    fn free(&self, at: f64, way: f64, width: f64, y: f64) -> bool {
        let (left, right) = if way > 0.0 { (at, at + width) } else { (at - width, at) };
        left >= 0.0 && right <= self.look.width && self.hit(left, right, y).is_none()
    }

    fn blocking(&self, at: f64, way: f64, width: f64, y: f64) -> Option<f64> {
        let (left, right) = if way > 0.0 { (at, at + width) } else { (at - width, at) };
        self.hit(left, right, y)
    }

    /// Widest of the usual fonts; too wide is better than too narrow.
    fn measure(&self, text: &str, class: &str) -> f64 {
        let wide = |c: char| match c {
            '\u{2e80}'.. => 12.0,
            'm' | 'w' => 10.5,
            'A'..='Z' | '0'..='9' | '$' => 7.8,
            ' ' | '.' | ',' | 'i' | 'l' | 't' | '/' => 4.2,
            _ => 7.3,
        };
        let bold = matches!(class, "money" | "dup" | "dupret" | "win" | "replay");
        let weight = if bold { 1.14 } else { 1.0 };
        text.chars().map(wide).sum::<f64>() * weight * self.look.scale
    }

    pub(super) fn label(&mut self, text: &str, x: f64, y: f64, anchor: &str, class: &str) {
        // Whatever the rules say, nothing leaves the picture.
        let width = self.measure(text, class);
        let x = match anchor {
            "end" => x.max(width + 2.0),
            _ => x.min(self.look.width - width - 2.0).max(2.0),
        };
        let (size, text) = (12.0 * self.look.scale, escaped(text));
        self.put(format_args!(
            "<text class=\"lb {class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size:.1}\">{text}</text>"
        ));
    }
}
