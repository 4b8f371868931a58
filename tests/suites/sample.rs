//! The contract most suites use: airports from a CSV file, few enough to read.

use weir_tests::House;

pub(crate) const CONTRACT: &str = r#"
contract: airports
description: A few airports.
collections:
  airports:
    adapter: sheet
    settings: { connection: data, path: airports.csv }
    columns: [iata, name, country, elevation_ft, latitude]
    key: [iata]
    write: true
    shape: { elevation_ft: { type: integer, nullable: true }, latitude: { type: number, nullable: true } }
tools:
  - tool: lookup_airport
    title: Look up an airport
    description: Returns the airport with an IATA code.
    verb: lookup
    collection: airports
    fields:
      - { name: iata, type: text, required: true, pattern: "^[A-Z]{3}$", help: "IATA code." }
  - tool: list_airports
    description: Lists airports by country and elevation.
    verb: list
    collection: airports
    limits: { rows_max: 100 }
    fields:
      - { name: country, type: dropdown, choices: [NO, SE, IS] }
      - { name: min_elevation_ft, type: number, min: 0, max: 9000, column: elevation_ft, match: at-least }
  - tool: create_airport
    description: Adds an airport.
    verb: create
    collection: airports
    fields:
      - { name: iata, type: text, required: true, pattern: "^[A-Z]{3}$" }
      - { name: name, type: text, required: true, max_length: 80 }
      - { name: country, type: dropdown, required: true, choices: [NO, SE, IS] }
      - { name: elevation_ft, type: number }
"#;

pub(crate) const DATA: &str = "\
iata,name,country,elevation_ft,latitude
ARN,Stockholm-Arlanda Airport,SE,137,59.651901
BGO,Bergen Airport Flesland,NO,170,60.2934
GOT,Gothenburg-Landvetter Airport,SE,506,57.662799
KEF,Keflavik International Airport,IS,171,63.985001
OSL,Oslo Gardermoen Airport,NO,681,60.193901
TRD,Trondheim Airport Vaernes,NO,56,63.457802
";

pub(crate) fn house() -> House {
    House::new()
        .sheets()
        .file("contracts/airports.yaml", CONTRACT)
        .file("data/airports.csv", DATA)
}
