//! Which traffic has which service level: named levels, and rules of which the first that fits decides.

use softfabric_units::{Guid, PartitionKey};
use softfabric_wire::mad::cm::ServiceId;
use thiserror::Error;

/// A level of service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Level {
    /// What rules call it.
    pub name: String,
    /// The service level, 0–15.
    pub sl: u8,
}

/// Which paths have a level. Of each list that is not empty, one must fit.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Rule {
    /// The level's name.
    pub level: String,
    /// Partitions, whatever the membership.
    pub partitions: Vec<PartitionKey>,
    /// Services, from the first to the last of each range.
    pub services: Vec<(ServiceId, ServiceId)>,
    /// Classes of service that who asks may name.
    pub classes: Vec<u16>,
    /// Ports where the path starts.
    pub sources: Vec<Guid>,
    /// Ports where it ends.
    pub destinations: Vec<Guid>,
}

/// What is known of a path that somebody asks for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The partition that the path is in.
    pub partition: PartitionKey,
    /// The service, where it is named.
    pub service: Option<ServiceId>,
    /// The class, where it is named.
    pub class: Option<u16>,
    /// The port where it starts.
    pub source: Guid,
    /// The port where it ends.
    pub destination: Guid,
}

/// Levels and rules.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Policy {
    levels: Vec<Level>,
    /// With the places of their levels.
    rules: Vec<(Rule, usize)>,
}

/// A policy that cannot be followed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PolicyError {
    /// Not a service level.
    #[error("level {name:?} has the service level {sl}, needed 0 to 15")]
    ServiceLevel {
        /// Whose.
        name: String,
        /// What it is.
        sl: u8,
    },
    /// Two of one name.
    #[error("there are two levels called {name:?}: give one another name")]
    Twice {
        /// The name.
        name: String,
    },
    /// A rule for a level that is not there.
    #[error("rule {rule} gives the level {name:?}, and there {}", known(.levels))]
    UnknownLevel {
        /// Which rule, from 1.
        rule: usize,
        /// The name.
        name: String,
        /// Those that there are.
        levels: Vec<String>,
    },
}

fn known(levels: &[String]) -> String {
    match levels {
        [] => "are no levels".to_owned(),
        levels => format!("are {}", levels.join(", ")),
    }
}

impl Policy {
    /// Levels, and rules in the order in which they are tried.
    ///
    /// # Errors
    /// If a service level is none, two levels have one name, or a rule names none of them.
    pub fn new(levels: Vec<Level>, rules: Vec<Rule>) -> Result<Self, PolicyError> {
        for (index, level) in levels.iter().enumerate() {
            let name = level.name.clone();
            if level.sl > 15 {
                return Err(PolicyError::ServiceLevel { name, sl: level.sl });
            }
            if levels[..index].iter().any(|other| other.name == name) {
                return Err(PolicyError::Twice { name });
            }
        }
        let named = |(number, rule): (usize, Rule)| {
            let place = levels.iter().position(|level| level.name == rule.level);
            match place {
                Some(place) => Ok((rule, place)),
                None => Err(PolicyError::UnknownLevel {
                    rule: number,
                    name: rule.level,
                    levels: levels.iter().map(|level| level.name.clone()).collect(),
                }),
            }
        };
        let rules = (1..).zip(rules).map(named).collect::<Result<_, _>>()?;
        Ok(Self { levels, rules })
    }

    /// The levels.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// How many rules.
    pub const fn rules(&self) -> usize {
        self.rules.len()
    }

    /// The level of a path: of the first rule that fits.
    pub fn level(&self, request: &Request) -> Option<&Level> {
        let found = self.rules.iter().find(|(rule, _)| rule.fits(request));
        found.map(|(_, place)| &self.levels[*place])
    }
}

impl Rule {
    fn fits(&self, request: &Request) -> bool {
        fn one<T>(all: &[T], fits: impl Fn(&T) -> bool) -> bool {
            all.is_empty() || all.iter().any(fits)
        }
        let number = |key: PartitionKey| key.0 & 0x7fff;
        one(&self.partitions, |key| {
            number(*key) == number(request.partition)
        }) && one(&self.services, |(first, last)| {
            request
                .service
                .is_some_and(|service| *first <= service && service <= *last)
        }) && one(&self.classes, |class| request.class == Some(*class))
            && one(&self.sources, |guid| *guid == request.source)
            && one(&self.destinations, |guid| *guid == request.destination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(name: &str, sl: u8) -> Level {
        Level {
            name: name.to_owned(),
            sl,
        }
    }

    fn policy() -> Policy {
        let storage = Rule {
            level: "storage".to_owned(),
            partitions: vec![PartitionKey(0x8001)],
            services: vec![(ServiceId(0x1000), ServiceId(0x1fff))],
            ..Rule::default()
        };
        let rest = Rule {
            level: "rest".to_owned(),
            sources: vec![Guid(7)],
            ..Rule::default()
        };
        Policy::new(
            vec![level("rest", 0), level("storage", 3)],
            vec![storage, rest],
        )
        .unwrap()
    }

    #[test]
    fn the_first_rule_that_fits_in_all_its_lists_decides() {
        let policy = policy();
        let request = Request {
            partition: PartitionKey(1),
            service: Some(ServiceId(0x1fff)),
            class: None,
            source: Guid(7),
            destination: Guid(8),
        };
        let sl = |request: Request| policy.level(&request).map(|level| level.sl);
        assert_eq!(sl(request), Some(3), "membership does not matter");
        let other = Request {
            service: Some(ServiceId(0x2000)),
            ..request
        };
        assert_eq!(sl(other), Some(0));
        assert_eq!(
            sl(Request {
                service: None,
                ..request
            }),
            Some(0)
        );
        assert_eq!(
            sl(Request {
                service: None,
                source: Guid(9),
                ..request
            }),
            None
        );
        assert_eq!(
            sl(Request {
                partition: PartitionKey(2),
                source: Guid(9),
                ..request
            }),
            None
        );
    }

    #[test]
    fn what_is_not_there_is_told() {
        let rule = Rule {
            level: "fast".to_owned(),
            ..Rule::default()
        };
        let told = |levels, rules| Policy::new(levels, rules).unwrap_err().to_string();
        assert_eq!(
            told(vec![level("rest", 0), level("storage", 3)], vec![rule]),
            "rule 1 gives the level \"fast\", and there are rest, storage"
        );
        assert!(told(vec![level("a", 16)], Vec::new()).contains("needed 0 to 15"));
        assert!(told(vec![level("a", 1), level("a", 2)], Vec::new()).contains("two levels"));
    }
}
