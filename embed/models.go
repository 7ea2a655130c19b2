package embed

import "strings"

// modelFacts is what a model's card says and its API does not: the prefixes it was trained with and how many tokens it reads.
type modelFacts struct {
	match          string // part of the name, lower case
	query, passage string
	tokens         int
}

// knownModel returns the facts of the first entry whose match is in the name, or none.
func knownModel(name string) modelFacts {
	const represent = "Represent this sentence for searching relevant passages: "
	name = strings.ToLower(name)
	for _, m := range []modelFacts{
		{match: "text-embedding-", tokens: 8191},
		{match: "nomic-embed", query: "search_query: ", passage: "search_document: ", tokens: 2048},
		{match: "embeddinggemma", query: "task: search result | query: ", passage: "title: none | text: ", tokens: 2048},
		{match: "qwen3-embedding", query: "Instruct: Given a question, retrieve earlier messages that answer it\nQuery:", tokens: 8192},
		{match: "e5-mistral", query: "Instruct: Given a question, retrieve earlier messages that answer it\nQuery: ", tokens: 4096},
		{match: "e5-", query: "query: ", passage: "passage: ", tokens: 512},
		{match: "mxbai-embed", query: represent, tokens: 512},
		{match: "snowflake-arctic-embed2", query: "query: ", tokens: 8192},
		{match: "arctic-embed-l-v2", query: "query: ", tokens: 8192},
		{match: "arctic-embed-m-v2", query: "query: ", tokens: 8192},
		{match: "arctic-embed", query: represent, tokens: 512},
		{match: "bge-m3", tokens: 8192},
		{match: "bge-", query: represent, tokens: 512},
		{match: "all-minilm", tokens: 256},
		{match: "paraphrase-multilingual", tokens: 128},
	} {
		if strings.Contains(name, m.match) {
			return m
		}
	}
	return modelFacts{}
}
