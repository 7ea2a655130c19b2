package main

import (
	"math/rand/v2"
	"strings"
)

// benchNames are the people of the synthetic history.
var benchNames = [...]string{
	"Ada", "Bram", "Chloe", "Dmitri", "Elif", "Femke", "Goran", "Hanna", "Ivo", "Jana", "Karim", "Lotte",
	"Mateo", "Nadia", "Otto", "Priya", "Quinn", "Rosa", "Sven", "Tessa", "Umar", "Vera", "Wim", "Yara",
}

// benchBase are plain words, the most frequent ones of the language first.
const benchBase = `
	the to and a of it is in that for on we you i this with be was at have not as but are can so if will do from
	they or just about what when all there then out up one would my me our get got need see think know like make
	way time now still also more some back into how their them been had did after before here where because could
	should only which over new last first next week today tomorrow meeting plan list note notes letter ticket
	order invoice budget price cost payment bank card account contract lease rent deposit house flat room kitchen
	bathroom bedroom garden balcony roof window door floor wall cellar stairs key lock boiler heating radiator
	pipe leak water tap pump meter power socket cable lamp light switch fuse battery charger bike car train bus
	ferry flight station platform airport hotel booking suitcase passport visa map route bridge road tunnel
	harbour beach island mountain valley forest river lake city village street square market shop bakery butcher
	pharmacy library museum theatre cinema restaurant cafe bar doctor dentist hospital clinic appointment
	prescription allergy tablet vaccine fever cough knee shoulder pain surgery physio glasses hearing sleep diet
	weight blood pressure test result mother father sister brother daughter son uncle aunt cousin grandmother
	grandfather neighbour friend colleague boss teacher coach landlord tenant plumber electrician gardener nurse
	lawyer school class homework exam grade course lesson language grammar book chapter page story poem song
	piano guitar violin concert choir band film picture photo camera painting bread butter cheese milk egg flour
	sugar salt pepper garlic onion tomato potato carrot pumpkin bean lentil rice pasta soup stew cake biscuit
	chocolate coffee tea juice wine beer sourdough starter oven pan recipe dinner lunch breakfast dog cat horse
	bird fish hen sheep goat bee vet leash cage feed spring summer autumn winter january february march april may
	june july august september october november december monday tuesday wednesday thursday friday saturday sunday
	morning evening night weekend holiday birthday wedding funeral party gift server laptop phone printer router
	modem network firewall port address domain certificate password token login session cookie browser tab script
	shell terminal command folder file archive backup snapshot restore disk partition volume mount memory cache
	queue worker thread process container cluster node pod image registry deploy release rollback branch commit
	merge review pipeline build failure error warning log trace metric alert dashboard graph threshold timeout
	retry latency throughput schema table column index query join migration database replica primary secondary
	clock drift leader election shard topic consumer producer message payload header request response endpoint
	gateway proxy balancer health probe parcel courier depot dispatch delivery tracking label warehouse shelf
	pallet truck van driver shift rota hub customer supplier quote tender discount refund complaint survey report
	quarter revenue margin forecast target hiring interview candidate salary bonus tax declaration receipt
	deduction insurance claim policy premium pension mortgage interest loan saving stock fund decide change move
	keep drop fix break repair replace install remove add update check clean paint draw write read send call ask
	answer explain remember forget learn teach try start stop finish wait hurry walk run ride drive swim climb
	cook bake eat drink sell buy pay lend borrow sign cancel confirm postpone arrange organise collect deliver
	return open close lift carry push pull cut measure count compare choose prefer suggest agree refuse promise
	warn worry hope wish dream laugh cry sing dance play win lose big small long short high low wide narrow heavy
	full empty old young early late fast slow hot cold warm cool wet dry dirty safe dangerous easy hard cheap
	expensive quiet loud bright dark soft strong weak sweet sour bitter fresh stale broken spare public private
	local remote weekly monthly yearly double single certain possible ready busy free tired happy sad angry calm
	careful strange normal red blue green yellow orange purple brown grey black white silver golden copper steel
	timber brick cement plaster glass plastic paper cardboard leather cotton wool linen rubber screw nail hammer
	drill saw ladder bucket brush glue tape rope chain wheel brake pedal saddle helmet engine gear oil filter
	mirror tyre north south east west left right inside outside above below between behind percent metre
	kilometre litre kilo gram hour minute second degree euro half dozen hundred thousand signal noise sensor
	antenna radio satellite weather storm thunder snow ice frost fog wind rain sunshine tide moon star planet
	comet telescope chess football tennis hockey rowing sailing skating judo marathon league referee score goal
	medal exhibition sculpture ceramic mosaic fresco manuscript press editor novel essay diary biography orchard
	vineyard meadow hedge fence gate compost seed bulb tulip rose lavender basil thyme rosemary mint parsley
	lettuce spinach cucumber radish beetroot cabbage cauliflower embassy permit registration municipality council
	ballot mayor minister parliament law court judge witness appeal fine molecule enzyme protein virus bacteria
	fossil mineral crystal magnet laser isotope theorem proof equation matrix vector gradient sample variance
`

// benchWords lists the words of the synthetic history, most frequent first: the plain ones, and
// made-up names of things, of which a long history has thousands.
func benchWords(rng *rand.Rand) []string {
	const madeUp = 12_000
	out := strings.Fields(benchBase)
	begin := strings.Fields("bal cor dan fel gri hol jas kel lum mar nor ost pel quil ras sol tam ul ver wex yor zan bri cla dre flo gra kno plo ska tre")
	middle := strings.Fields("a e i o u an el in or um ara ene iso ola uma")
	end := strings.Fields("ber dale den dor field ford gard ham ka ky lin mar mere mont nik ra rin sen sta ton ver vik wick zo")
	for range madeUp {
		out = append(out, begin[rng.IntN(len(begin))]+middle[rng.IntN(len(middle))]+end[rng.IntN(len(end))])
	}
	return out
}
