package when

import (
	"slices"
	"strings"
	"sync"
)

// lexicon is what words mean, in all languages together: a word of one language that is a word of
// another too ("hier", "morgen", "mañana", "été", "mar") is settled by what stands around it.
var lexicon = sync.OnceValue(func() map[string][]meaning {
	m := map[string][]meaning{}
	add := func(k kind, n int, words string) {
		for w := range strings.FieldsSeq(words) {
			m[w] = append(m[w], meaning{k, n})
		}
	}
	for k, list := range plainWords {
		add(k, 0, list)
	}
	for n, list := range dayWords {
		add(isDay, n, list)
	}
	for u, list := range unitWords {
		add(isUnit, int(u), list)
	}
	for _, names := range weekdayNames {
		for i, w := range strings.Fields(names) {
			add(isWeekday, i, w)
		}
	}
	for _, names := range monthNames {
		for i, w := range strings.Fields(names) {
			add(isMonth, i+1, w)
		}
	}
	for i, list := range seasonWords {
		add(isSeason, i, list)
	}
	for n, list := range numberWords {
		add(isNumber, n, list)
	}
	for f, list := range feastNames {
		add(isFeast, f, list)
	}
	return m
})

// plainWords say how the rest is meant. Words are without accents and in lower case.
var plainWords = map[kind]string{
	isLast: `last past previous letzte letzten letzter letztes letztem vorige vorigen voriger voriges vergangene vergangenen vergangener vergangenes
		pasado pasada ultimo ultima ultimos ultimas dernier derniere derniers dernieres passe passee
		scorso scorsa ultimi ultime passato passata passado passada vorig afgelopen прошлый прошлая прошлое прошлой прошлом прошлую прошлого последние последних`,
	isBefLast: `vorletzte vorletzten vorletzter vorletztes antepasado antepasada penultimo позапрошлый позапрошлой позапрошлом`,
	isThis:    `this diese diesen dieser dieses diesem este esta ce cet cette questo questa deze dit эта этой этом этот эту`,
	isNext: `next coming nachste nachsten nachster nachstes kommende kommenden kommender proximo proxima prochain prochaine prossimo prossima
		volgende komende следующий следующая следующей следующем`,
	isAgo:     `ago geleden fa atras назад`,
	isAgoPre:  `hace vor ha ilya`,
	isBefore:  `before vor antes avant prima voor до`,
	isAfter:   `after nach despues apres dopo depois после`,
	isSince:   `since seit desde depuis dal dalla sinds с`,
	isUntil:   `until till bis hasta jusqu fino ate tot by`,
	isIn:      `in im en em nel during wahrend durante pendant au в во early late mid anfang ende mitte debut fin principios finales mediados inizio fine`,
	isOn:      `on am em vom le al op el no na`,
	isOf:      `of de del des di do da van du d`,
	isThe:     `the der die das dem den le la les los las el il lo l i o os as het de the of`,
	isEvery:   `every each jeden jede jedes jeder cada todos todas chaque tous toutes ogni elke iedere каждый каждую`,
	isBetween: `between from zwischen von vom entre desde da tra fra van tussen`,
	isAnd:     `and und y e et to bis hasta al au a en tot`,
	isDayWord: `year jahr jahre ano annee anno jaar dia jour giorno dag год году`,
	isPart: `morning afternoon evening night noon tonight nachmittag abend nacht mittag vormittag fruh mittags abends
		tarde noche matin soir apres midi nuit mattina pomeriggio sera notte manha noite ochtend middag avond утром вечером днем`,
}

// dayWords are days by their distance from today.
var dayWords = map[int]string{
	-3: `vorvorgestern`,
	-2: `vorgestern anteayer antier avanthier eergisteren anteontem позавчера`,
	-1: `yesterday gestern ayer anoche hier ieri ontem gisteren вчера`,
	0:  `today tonight heute hoy aujourdhui oggi hoje vandaag сегодня`,
	1:  `tomorrow morgen manana demain domani amanha завтра`,
	2:  `ubermorgen overmorgen dopodomani`,
}

// unitWords are units of time.
var unitWords = map[unit]string{
	hour:    `hour hours stunde stunden hora horas heure heures ora ore uur uren час часа часов`,
	day1:    `day days tag tage tagen dia dias jour jours giorno giorni dag dagen день дня дней`,
	week:    `week weeks woche wochen semana semanas semaine semaines settimana settimane weken неделя неделю недели недель неделе`,
	weekend: `weekend weekends wochenende finde weekeinde выходные выходных`,
	month:   `month months monat monate monaten monats mes meses mois mese mesi maand maanden месяц месяца месяцев месяце`,
	quarter: `quarter quarters quartal quartale trimestre trimestres kwartaal квартал квартале`,
	year:    `year years jahr jahre jahren jahres ano anos an ans annee annees anno anni jaar jaren год года лет году`,
}

// weekdayNames begin with Sunday.
var weekdayNames = []string{
	`sunday monday tuesday wednesday thursday friday saturday`,
	`sonntag montag dienstag mittwoch donnerstag freitag samstag`, `sonntag montag dienstag mittwoch donnerstag freitag sonnabend`,
	`domingo lunes martes miercoles jueves viernes sabado`, `dimanche lundi mardi mercredi jeudi vendredi samedi`,
	`domenica lunedi martedi mercoledi giovedi venerdi sabato`, `zondag maandag dinsdag woensdag donderdag vrijdag zaterdag`,
	`воскресенье понедельник вторник среду четверг пятницу субботу`,
}

var monthNames = []string{
	`january february march april may june july august september october november december`,
	`jan feb mar apr may jun jul aug sept oct nov dec`, `jan feb mar apr may jun jul aug sep okt nov dez`,
	`januar februar marz april mai juni juli august september oktober november dezember`,
	`janner februar maerz april mai juni juli august september oktober november dezember`,
	`enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre`,
	`janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre`, //nolint:misspell // French
	`gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre`,
	`janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro`,
	`januari februari maart april mei juni juli augustus september oktober november december`,
	`января февраля марта апреля мая июня июля августа сентября октября ноября декабря`,
	`январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре`,
}

// seasonWords begin with spring, March to May.
var seasonWords = []string{
	`spring fruhling fruhjahr primavera printemps lente весной весна`, `summer sommer verano ete estate verao zomer летом лето`,
	`autumn fall herbst otono automne autunno outono herfst осенью осень`, `winter invierno hiver inverno зимой зима`,
}

var numberWords = map[int]string{
	1:  `one a an ein eine einem einen einer un una uno une um uma een один одну`,
	2:  `two couple zwei dos deux due dois duas twee два две`,
	3:  `three few drei tres trois tre drie три paar unos unas algunos quelques enkele`,
	4:  `four vier cuatro quatre quattro quatro четыре`,
	5:  `five funf cinco cinq cinque vijf пять`,
	6:  `six sechs seis sei zes шесть`,
	7:  `seven sieben siete sept sette sete zeven`,
	8:  `eight acht ocho huit otto oito`,
	9:  `nine neun nueve neuf nove negen`,
	10: `ten zehn diez dix dieci dez tien десять`,
	12: `twelve zwolf doce douze dodici doze twaalf`,
	14: `fourteen vierzehn catorce quatorze quattordici`,
	15: `fifteen quince quinze`,
}

// The feasts, of which easter and those of movable days are computed.
const (
	christmas = iota
	christmasEve
	newYear
	newYearsEve
	easter
	pentecost
	halloween
	thanksgiving
	valentine
	nationalDay // of China
	springFestival
)

// feastNames are without accents; those of several words are among the phrases.
var feastNames = map[int]string{
	christmas:    `christmas xmas weihnachten weihnacht navidad navidades noel natale natal kerst kerstmis рождество рождества`,
	christmasEve: `heiligabend nochebuena kerstavond`,
	newYear:      `neujahr capodanno nieuwjaar`,
	newYearsEve:  `silvester nochevieja oudjaar`,
	easter:       `easter ostern paques pasqua pascoa pasen`,
	pentecost:    `pentecost pfingsten pentecote pinksteren`,
	halloween:    `halloween`,
	thanksgiving: `thanksgiving`,
	valentine:    `valentinstag`,
}

// phrases are words that are one, as they are split, longest first.
var phrases = sync.OnceValue(func() [][2][]string {
	var out [][2][]string
	for line := range strings.SplitSeq(phraseList, "|") {
		from, to, _ := strings.Cut(line, "=")
		out = append(out, [2][]string{strings.Fields(from), strings.Fields(to)})
	}
	slices.SortStableFunc(out, func(a, b [2][]string) int { return len(b[0]) - len(a[0]) })
	return out
})

const phraseList = `the day before yesterday=anteayer|day before yesterday=anteayer|the day after tomorrow=ubermorgen|day after tomorrow=ubermorgen|
	antes de ayer=anteayer|avant hier=avanthier|aujourd hui=aujourdhui|apres demain=ubermorgen|l altro ieri=anteayer|pasado manana=ubermorgen|
	il y a=ilya|fin de semana=finde|week end=weekend|fine settimana=finde|fim de semana=finde|la semaine d avant=semaine derniere|
	christmas eve=heiligabend|new year s eve=silvester|new years eve=silvester|new year s day=neujahr|new years day=neujahr|new year s=neujahr|
	new year=neujahr|valentine s day=valentinstag|valentines day=valentinstag|saint valentin=valentinstag|san valentin=valentinstag|
	ano nuevo=neujahr|nouvel an=neujahr|ano novo=neujahr|semana santa=ostern|this past=last|einem halben jahr=sechs monaten`
