//! Inputs that make a careless matcher quadratic, at three sizes:
//! `cargo bench -p aldis-testkit --bench adversarial [-- NAME]`.

mod measure;

use std::io::{self, Write as _};
use std::time::Duration;

use aldis_signal::{Origin, Rules, Scan, scan};
use aldis_testkit::corpus::bulk::{ADVERSARIAL, Adversarial, adversarial};
use measure::{Bars, Contender, medians, timed};

const MIB: usize = 1 << 20;
const CHUNK: usize = 4096;
const ROUNDS: usize = 3;
/// What takes longer for one MiB has failed already: it is not tried with more.
const PATIENCE: Duration = Duration::from_secs(1);

/// What one kind costs.
struct Row {
    name: &'static str,
    /// How many genuine signals 10 MiB are made of, if it is made of those.
    genuine: Option<usize>,
    whole: Costs,
    chunked: Costs,
    /// The most bytes kept between chunks.
    kept: usize,
}

/// What sizes cost.
struct Costs {
    one: Duration,
    /// 8 and 10 MiB, unless one was too much.
    more: Option<[Duration; 2]>,
    /// How much more eight times as much text costs: 8 MiB and 1, or else 1 MiB and an eighth.
    growth: f64,
}

impl Costs {
    /// Returns what 10 MiB cost, or would cost at best.
    fn ten(&self) -> Duration {
        self.more.map_or(self.one * 10, |[_, ten]| ten)
    }
}

fn main() -> io::Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let mut rows = Vec::new();
    for kind in ADVERSARIAL {
        if wanted.is_empty() || wanted.iter().any(|name| name == kind.name) {
            rows.push(measure_kind(kind)?);
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.whole.ten().max(row.chunked.ten())));
    print(&rows)?;
    bars(&rows).report()
}

fn measure_kind(kind: &Adversarial) -> io::Result<Row> {
    let texts = [MIB / 8, MIB, 8 * MIB, 10 * MIB];
    let texts = texts.map(|bytes| adversarial(kind, bytes).into_bytes());
    let whole = measure_sizes(&texts, &whole)?;
    let chunked_costs = measure_sizes(&texts, &chunked)?;
    let longest = if chunked_costs.more.is_some() { &texts[2] } else { &texts[1] };
    let genuine = kind.genuine.then(|| kind.units(10 * MIB));
    Ok(Row { name: kind.name, genuine, whole, chunked: chunked_costs, kept: chunked(longest) })
}

fn measure_sizes(texts: &[Vec<u8>; 4], run: &dyn Fn(&[u8]) -> usize) -> io::Result<Costs> {
    let [eighth, one, eight, ten] = texts;
    let tried = timed(|| run(one))?;
    let sizes = if tried > PATIENCE { vec![eighth, one] } else { vec![one, eight, ten] };
    let contenders =
        sizes.into_iter().map(|text| -> Contender<'_> { Box::new(move || timed(|| run(text))) });
    let costs = medians(ROUNDS, &mut contenders.collect::<Vec<_>>())?;
    let growth = costs[1].as_secs_f64() / costs[0].as_secs_f64();
    Ok(match *costs {
        [one, eight, ten] => Costs { one, more: Some([eight, ten]), growth },
        _ => Costs { one: tried, more: None, growth },
    })
}

fn whole(text: &[u8]) -> usize {
    scan(Rules::builtin(), text, &Origin::assistant()).len()
}

/// Returns the most bytes kept between chunks.
fn chunked(text: &[u8]) -> usize {
    let (mut findings, mut kept) = (0_usize, 0);
    let mut scanner = Scan::new(Rules::builtin()).stream();
    for chunk in text.chunks(CHUNK) {
        scanner.push(chunk, &mut |_| findings += 1);
        kept = kept.max(scanner.kept());
    }
    scanner.finish(&mut |_| findings += 1);
    std::hint::black_box(findings);
    kept
}

fn print(rows: &[Row]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "In ms, whole and in chunks of 4 KiB.\n\n\
         | kind | 1 MiB | 8 MiB | 10 MiB | 8/1 | 1, chunks | 8, chunks | 10, chunks | 8/1 | \
         kept, KiB |\n|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for Row { name, whole, chunked, kept, .. } in rows {
        let kept = kept / 1024;
        let (whole_growth, chunked_growth) = (whole.growth, chunked.growth);
        let [whole_one, whole_eight, whole_ten] = cells(whole);
        let [chunked_one, chunked_eight, chunked_ten] = cells(chunked);
        writeln!(
            out,
            "| {name} | {whole_one} | {whole_eight} | {whole_ten} | {whole_growth:.1} | \
             {chunked_one} | {chunked_eight} | {chunked_ten} | {chunked_growth:.1} | {kept} |"
        )?;
    }
    Ok(())
}

fn cells(costs: &Costs) -> [String; 3] {
    let millis = |cost: Duration| format!("{:.1}", cost.as_secs_f64() * 1e3);
    let [eight, ten] =
        costs.more.map_or_else(|| ["-", "-"].map(str::to_owned), |more| more.map(millis));
    [millis(costs.one), eight, ten]
}

fn bars(rows: &[Row]) -> Bars {
    let mut bars = Bars::default();
    // Of a fraction of a millisecond the ratio is noise.
    let grows = |costs: &Costs| costs.growth > 10.0 && costs.ten() > Duration::from_millis(5);
    let slow = |row: &Row, costs: &Costs| row.genuine.is_none() && costs.ten() >= TEN_MAX;
    add(&mut bars, "8 MiB at most 10 x 1 MiB", rows, |row| grows(&row.whole));
    add(&mut bars, "the same in chunks of 4 KiB", rows, |row| grows(&row.chunked));
    let quick = "10 MiB under 250 ms, unless made of genuine signals";
    add(&mut bars, quick, rows, |row| slow(row, &row.whole));
    add(&mut bars, "the same in chunks of 4 KiB", rows, |row| slow(row, &row.chunked));
    add(&mut bars, "at most 512 KiB kept", rows, |row| row.kept > KEPT_MAX);
    bars
}

fn add(bars: &mut Bars, bar: &str, rows: &[Row], misses: impl Fn(&Row) -> bool) {
    let missed: Vec<&str> = rows.iter().filter(|row| misses(row)).map(|row| row.name).collect();
    let measured = match missed.len() {
        0 => "all kinds".to_owned(),
        _ => format!("not {}", missed.join(", ")),
    };
    bars.add(bar, measured, missed.is_empty());
}

const KEPT_MAX: usize = 512 * 1024;
const TEN_MAX: Duration = Duration::from_millis(250);
