//! What can be tuned in a scenario: fields of its file, with the values that a search may give them.
//!
//! A point of the search is a number from 0 to 1 for each parameter. What it means is a text for the file, rounded as people
//! would write it, so that a file with these values runs exactly what the search ran.

use std::fmt;

use serde::Serialize;
use softfabric_transport::rate::RateControlConfig;
use softfabric_units::{Bytes, Rate, Span};

use crate::plan::{Alpha, Ecn, NodeKind, NotificationPoint, Plan};
use crate::scenario::{EditError, Scenario, set};

/// How values lie between the smallest and the largest.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    /// Each doubling is as long as the next one.
    Logarithmic,
    /// Powers of two alone: the exponents.
    PowersOfTwo,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Bytes,
    Rate,
    /// Nanoseconds.
    Time,
    Number,
    /// A power of two: `1/8`, `4`.
    Share,
}

/// A parameter that can be tuned.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parameter {
    /// The field, as a path in the file: `host.congestion_control.alpha_gain`. The three of a marking have the path of its list
    /// and their own name behind it.
    pub(super) field: String,
    least: f64,
    most: f64,
    scale: Scale,
    form: Form,
    /// What it is before.
    start: f64,
}

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The field.
    pub field: String,
    /// The value as it stands in the file.
    pub value: String,
}

/// All parameters of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Space {
    pub(super) parameters: Vec<Parameter>,
    /// Fields that must be said for the parameters to be allowed, with their values.
    needed: Vec<(String, String)>,
    /// The list of markings that kmin, kmax and pmax are written into, and for which rate.
    marking: Option<(String, Rate)>,
}

impl Parameter {
    /// The value at a place from 0 to 1, rounded to what is written.
    fn value(&self, place: f64) -> f64 {
        let place = place.clamp(0.0, 1.0);
        match self.scale {
            Scale::Logarithmic => {
                let ratio = libm::log(self.most / self.least);
                rounded(self.least * libm::exp(ratio * place))
            }
            Scale::PowersOfTwo => libm::round(self.least + (self.most - self.least) * place),
        }
    }

    /// The place of its start.
    fn place_of_start(&self) -> f64 {
        let start = self.start.clamp(self.least, self.most);
        match self.scale {
            Scale::Logarithmic => libm::log(start / self.least) / libm::log(self.most / self.least),
            Scale::PowersOfTwo => (start - self.least) / (self.most - self.least),
        }
    }

    fn text(&self, value: f64) -> String {
        match self.form {
            Form::Bytes => Bytes::new(libm::round(value) as u64)
                .to_string()
                .replace(' ', ""),
            Form::Rate => format!("{}kb/s", libm::round(value / 1e3) as u64),
            Form::Time => format!("{}ns", libm::round(value) as u64),
            Form::Number => format!("{value}"),
            Form::Share if value < 0.0 => format!("1/{}", 1u64 << (-value) as u32),
            Form::Share => format!("{}", 1u64 << value as u32),
        }
    }

    fn is_of_marking(&self) -> bool {
        ["kmin", "kmax", "pmax"]
            .iter()
            .any(|name| self.field.ends_with(&format!(".ecn.{name}")))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.field, self.value)
    }
}

/// Three digits: more nobody sets.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

impl Space {
    /// The parameters of a scenario whose hosts speak RoCE; `None` if nothing of it can be tuned.
    pub(super) fn of(scenario: &Scenario, plan: &Plan) -> Option<Self> {
        if plan.link_layer.infiniband().is_some() {
            return None;
        }
        let mut space = Self {
            parameters: Vec::new(),
            needed: Vec::new(),
            marking: None,
        };
        let listens = (plan.host_profiles.iter()).any(|profile| {
            profile.tcp.is_none() && profile.nic.notification != NotificationPoint::Off
        });
        let lossless = plan.switch_profiles.first()?.lossless();
        let class = lossless.iter().next()?;
        let of_class = &plan.switch_profiles[0].classes[class.index()];
        let named = scenario.switch.class.get(&class.as_u8().to_string());
        if listens {
            let own = named.is_some_and(|class| class.ecn.is_some());
            let list = match own {
                true => format!("switch.class.{}.ecn", class.as_u8()),
                false => "switch.ecn".to_owned(),
            };
            space.marking(&of_class.ecn, list, plan);
            space.rate_control(scenario, plan);
        }
        let own = named.is_some_and(|class| class.alpha.is_some());
        let field = match own {
            true => format!("switch.class.{}.alpha", class.as_u8()),
            false => "switch.alpha".to_owned(),
        };
        space.threshold(of_class.ingress.threshold, field);
        (!space.parameters.is_empty()).then_some(space)
    }

    fn marking(&mut self, found: &[Ecn], list: String, plan: &Plan) {
        let Some(rate) = host_rate(plan) else { return };
        let marking = (found.iter())
            .find(|ecn| ecn.rate == Some(rate))
            .or_else(|| found.iter().find(|ecn| ecn.rate.is_none()));
        // From a packet or two up to some hundred microseconds of the port.
        let microseconds = |count: f64| rate.as_bps() as f64 / 8e6 * count;
        let kmin = marking.map_or(microseconds(32.0), |ecn| ecn.kmin.as_u64() as f64);
        let kmax = marking.map_or(microseconds(128.0), |ecn| ecn.kmax.as_u64() as f64);
        let pmax = marking.map_or(0.2, |ecn| ecn.pmax);
        let kmin = kmin.max(1.0);
        // Not where the ramp ends but how much longer than its beginning that is: no point is out of order.
        let ratio = (kmax / kmin).max(1.1);
        let range = (microseconds(0.8), microseconds(160.0));
        self.add(format!("{list}.kmin"), range, Form::Bytes, kmin);
        self.add(format!("{list}.kmax"), (1.1, 16.0), Form::Bytes, ratio);
        self.add(
            format!("{list}.pmax"),
            (0.005, 1.0),
            Form::Number,
            pmax.max(0.005),
        );
        self.marking = Some((list, rate));
    }

    fn rate_control(&mut self, scenario: &Scenario, plan: &Plan) {
        let control = plan
            .host_profiles
            .first()
            .map(|profile| profile.nic.rate_control);
        let (kind, gain, additive, hyper, increase, decrease) = match control {
            Some(RateControlConfig::DcqcnNic(found)) => (
                "dcqcn_nic",
                found.alpha_gain,
                found.additive_increase,
                found.hyper_increase,
                found.increase_period,
                Some(found.decrease_period),
            ),
            Some(RateControlConfig::DcqcnPaper(found)) => (
                "dcqcn_paper",
                found.alpha_gain,
                found.additive_increase,
                found.hyper_increase,
                found.increase_period,
                None,
            ),
            _ => return,
        };
        let field = |name: &str| format!("host.congestion_control.{name}");
        let bits = |rate: Rate| rate.as_bps() as f64;
        let nanos = |span: Span| span.as_picos() as f64 / 1e3;
        let line = host_rate(plan).map_or(1e11, bits);
        self.add(
            field("alpha_gain"),
            (1.0 / 1024.0, 0.25),
            Form::Number,
            gain,
        );
        self.add(
            field("additive_increase"),
            (line / 1e5, line / 50.0),
            Form::Rate,
            bits(additive),
        );
        self.add(
            field("hyper_increase"),
            (line / 1e4, line / 5.0),
            Form::Rate,
            bits(hyper),
        );
        self.add(
            field("increase_period"),
            (1e4, 1.5e6),
            Form::Time,
            nanos(increase),
        );
        if let Some(decrease) = decrease {
            self.add(
                field("decrease_period"),
                (1e3, 1e5),
                Form::Time,
                nanos(decrease),
            );
        }
        if scenario.host.congestion_control.is_none() {
            self.needed.push((field("kind"), format!("\"{kind}\"")));
        }
    }

    fn threshold(&mut self, found: Alpha, field: String) {
        match found {
            Alpha::Dynamic(exponent) => self.parameters.push(Parameter {
                field,
                least: -7.0,
                most: 4.0,
                scale: Scale::PowersOfTwo,
                form: Form::Share,
                start: f64::from(exponent).clamp(-7.0, 4.0),
            }),
            Alpha::Static(bytes) => {
                let start = bytes.as_u64().max(1) as f64;
                self.add(field, (start / 16.0, start * 16.0), Form::Bytes, start);
            }
            Alpha::Unlimited => {}
        }
    }

    /// Adds a parameter on a logarithmic scale, in this range or as much wider as its start needs.
    fn add(&mut self, field: String, (least, most): (f64, f64), form: Form, start: f64) {
        self.parameters.push(Parameter {
            field,
            least: least.min(start),
            most: most.max(start),
            scale: Scale::Logarithmic,
            form,
            start,
        });
    }

    /// The places of the scenario as it is.
    pub(super) fn start(&self) -> Vec<f64> {
        self.parameters
            .iter()
            .map(Parameter::place_of_start)
            .collect()
    }

    /// What the parameters are at these places.
    pub(super) fn settings(&self, places: &[f64]) -> Vec<Setting> {
        let mut values: Vec<f64> = (self.parameters.iter().zip(places))
            .map(|(parameter, place)| parameter.value(*place))
            .collect();
        // The end of the ramp was given as a multiple of its beginning.
        let at = |name: &str| {
            self.parameters
                .iter()
                .position(|parameter| parameter.field.ends_with(name))
        };
        if let (Some(kmin), Some(kmax)) = (at(".ecn.kmin"), at(".ecn.kmax")) {
            values[kmax] = rounded(values[kmin] * values[kmax]);
        }
        let settings = self
            .parameters
            .iter()
            .zip(values)
            .map(|(parameter, value)| Setting {
                field: parameter.field.clone(),
                value: parameter.text(value),
            });
        settings.collect()
    }

    /// The text with these settings.
    pub(super) fn write(&self, text: &str, settings: &[Setting]) -> Result<String, EditError> {
        let mut text = text.to_owned();
        for (field, value) in &self.needed {
            text = set(&text, field, value)?;
        }
        let of = |name: &str| {
            let found = settings
                .iter()
                .find(|setting| setting.field.ends_with(name));
            found.map_or("", |setting| setting.value.as_str())
        };
        if let Some((list, rate)) = &self.marking {
            let rate = rate.to_string().replace(' ', "");
            let marking = format!(
                "[{{ rate = \"{rate}\", scaled = true, kmin = \"{}\", kmax = \"{}\", pmax = {} }}]",
                of(".ecn.kmin"),
                of(".ecn.kmax"),
                of(".ecn.pmax")
            );
            text = set(&text, list, &marking)?;
        }
        for (parameter, setting) in self.parameters.iter().zip(settings) {
            if !parameter.is_of_marking() {
                let value = match parameter.form {
                    Form::Number => setting.value.clone(),
                    _ => format!("\"{}\"", setting.value),
                };
                text = set(&text, &parameter.field, &value)?;
            }
        }
        Ok(text)
    }
}

/// The rate of the first host's first link: the port at which most congestion is.
fn host_rate(plan: &Plan) -> Option<Rate> {
    let is_host = |node: crate::plan::NodeId| {
        matches!(plan.network.nodes[node.index()].kind, NodeKind::Host { .. })
    };
    let link = plan
        .network
        .links
        .iter()
        .find(|link| is_host(link.a.node) || is_host(link.b.node));
    link.map(|link| link.rate)
}
