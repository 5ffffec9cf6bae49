"""Names that hidden facts are about."""

PEOPLE = (
    "baker", "sailor", "tailor", "painter", "miller", "gardener", "weaver", "carpenter", "fisherman", "shepherd",
    "blacksmith", "potter", "printer", "clockmaker", "beekeeper", "ferryman",
)  # fmt: skip
PLACES = (
    "Alden", "Brimley", "Corvale", "Dunmoor", "Elstead", "Farrow", "Grenmouth", "Hollin", "Ivesham", "Kelby",
    "Larkhill", "Marlow", "Norwick", "Oakham", "Penrith", "Redcliff",
)  # fmt: skip
THINGS = (
    "bell", "spoon", "button", "whistle", "lantern", "mirror", "feather", "candle", "basket", "hammer", "ribbon",
    "bottle", "pencil", "drum", "anchor", "needle",
)  # fmt: skip
